/**
 * Owns names: from a message into text, from text into octets. Text is lower case, without the final dot, the root is
 * ''. An octet that is no letter, digit, `-`, `_` or `/` is `\DDD`, so that a dot in text always parts two labels and
 * two names are the same exactly when their texts are. Never follows a compression pointer.
 */

/** Octets of the longest name, its length octets and the root's included (RFC 1035, 3.1). */
export const longestName = 255;
const longestLabel = 63;

export interface ReadName {
  /** As text, without the root. */
  readonly labels: readonly string[];
  /** Where the octet behind the name is. */
  readonly end: number;
}

const textOfOctet: readonly string[] = Array.from({ length: 256 }, (_, octet) => {
  const character = String.fromCharCode(octet);
  return /[A-Za-z0-9\-_/]/.test(character) ? character.toLowerCase() : `\\${String(octet).padStart(3, '0')}`;
});

/** The uncompressed name at `start`; undefined when it is none: cut off, too long, a pointer, another label type. */
export function readName(message: Uint8Array, start: number): ReadName | undefined {
  const labels: string[] = [];
  let at = start;
  for (;;) {
    const length = message[at];
    if (length === undefined || length > longestLabel) return undefined;
    const end = at + 1 + length;
    if (end - start > longestName || end > message.length) return undefined;
    if (length === 0) return { labels, end };
    let label = '';
    for (let index = at + 1; index < end; index += 1) label += textOfOctet[message[index] ?? 0];
    labels.push(label);
    at = end;
  }
}

/** Where the octet behind the name at `start` is, which may end in a pointer; undefined when it is no name. */
export function skipName(message: Uint8Array, start: number): number | undefined {
  let at = start;
  for (;;) {
    const length = message[at];
    if (length === undefined) return undefined;
    if (length >= 0xc0) return at + 2 <= message.length ? at + 2 : undefined;
    const end = at + 1 + length;
    if (length > longestLabel || end - start > longestName || end > message.length) return undefined;
    if (length === 0) return end;
    at = end;
  }
}

/** Octets of a label of a name in text; undefined when it is no label. */
export function labelOctets(label: string): Uint8Array | undefined {
  const octets: number[] = [];
  for (let index = 0; index < label.length; index += 1) {
    const code = label.charCodeAt(index);
    if (code === 0x5c) {
      const digits = label.slice(index + 1, index + 4);
      if (!/^[0-9]{3}$/.test(digits) || Number(digits) > 255) return undefined;
      octets.push(Number(digits));
      index += 3;
    } else {
      if (code <= 0x20 || code >= 0x7f) return undefined;
      octets.push(code);
    }
  }
  return octets.length === 0 || octets.length > longestLabel ? undefined : Uint8Array.from(octets);
}

export function labelsOf(name: string): string[] {
  return name === '' ? [] : name.split('.');
}

/** Nearly every name there is: told by one look, where octet by octet a million records take 20 s. */
const plainName = /^[A-Za-z0-9_/-]{1,63}(?:\.[A-Za-z0-9_/-]{1,63})*$/;

/** Whether text is a name that fits into a message. */
export function isName(name: string): boolean {
  if (name.length <= longestName - 2 && plainName.test(name)) return true;
  let octets = 1;
  for (const label of labelsOf(name)) {
    const length = labelOctets(label)?.length;
    if (length === undefined) return false;
    octets += 1 + length;
  }
  return octets <= longestName;
}

/** The labels from the last to the first, each followed by a dot: names of one subtree share a beginning. */
export function treeKey(labels: readonly string[]): string {
  let key = '';
  for (let index = labels.length - 1; index >= 0; index -= 1) key += `${labels[index]}.`;
  return key;
}

/** What `treeKey` made, read back. */
export function nameOfTreeKey(key: string): string {
  return key.slice(0, -1).split('.').reverse().join('.');
}
