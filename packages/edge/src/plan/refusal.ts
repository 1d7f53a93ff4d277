/**
 * What nft's words mean: whether a rule was refused, or the machine could not take the transaction. Owns every
 * comparison with nft's messages.
 */

/** errno texts (glibc) of failures that no rule causes: nothing is quarantined for them. */
const environment = [
  'Cannot allocate memory',
  'No buffer space available',
  'Operation not permitted',
  'Resource temporarily unavailable',
  'Interrupted system call',
  'Message too long',
  'Too many open files',
];

export function isEnvironmental(message: string): boolean {
  return environment.some((text) => message.includes(text));
}

const longestReason = 300;

/** Why a rule is not in force, as one line for its owner. */
export function refusalReason(message: string): string {
  return `the kernel refuses it: ${firstError(message)}`;
}

/** Why nothing is taken at present, as one line for the operator. */
export function troubleReason(message: string): string {
  return `the kernel takes no changes: ${firstError(message)}`;
}

/** nft's first error and the command that it is about, without the markers under the quoted text. */
function firstError(message: string): string {
  const lines = message
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !/^[\^~ ]+$/.test(line));
  const first = lines
    .slice(0, 2)
    .join(': ')
    .replace(/^Error: /, '');
  if (first === '') return 'nft gave no reason';
  return first.length > longestReason ? `${first.slice(0, longestReason)}…` : first;
}
