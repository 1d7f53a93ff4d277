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

/**
 * nft's first error. Not the statement that it quotes: libnftables 1.0.6 quotes the first line of the text, whichever
 * line is to blame.
 */
function firstError(message: string): string {
  const [line = ''] = message.split('\n');
  const error = line.replace(/^(\S*: )?Error: (Could not process rule: )?/, '').trim();
  if (error === '') return 'nft gave no reason';
  return error.length > longestReason ? `${error.slice(0, longestReason)}…` : error;
}
