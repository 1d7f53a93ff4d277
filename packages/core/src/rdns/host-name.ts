/**
 * Reads a host name (RFC 952, RFC 1123 2.1) as a PTR record may hold it. Canonical: lower case, A-labels for what was
 * given in Unicode (UTS 46, as browsers convert), no final dot. Never looks anything up.
 */
import { domainToASCII } from 'node:url';
import { quote } from '../problem.ts';

export type HostNameResult =
  | { readonly ok: true; readonly name: string }
  /** `sentence` says what was received and what is allowed. */
  | { readonly ok: false; readonly code: HostNameProblemCode; readonly sentence: string };

export type HostNameProblemCode = 'invalid_host_name' | 'too_long' | 'numeric_top_label';

/** RFC 1035, 2.3.4: 255 octets on the wire are 253 characters. */
const longestName = 253;
const longestLabel = 63;

const allowed =
  'must be a host name of 1 to 253 characters: labels of 1 to 63 letters, digits and dashes, no dash first or last, ' +
  'with dots between, such as mail.example.net';

const refused = (code: HostNameProblemCode, sentence: string): HostNameResult => ({ ok: false, code, sentence });

export function parseHostName(text: string): HostNameResult {
  // The three full stops that UTS 46 takes for a dot.
  const dotted = text.replaceAll(/[\u3002\uff0e\uff61]/g, '.');
  const labels = (dotted.endsWith('.') ? dotted.slice(0, -1) : dotted).split('.');
  const ascii: string[] = [];
  for (const label of labels) {
    const read = readLabel(label);
    if (typeof read !== 'string') return refused('invalid_host_name', `${read.sentence}; ${allowed}`);
    ascii.push(read);
  }
  const name = ascii.join('.');
  if (name.length > longestName) {
    return refused('too_long', `${quote(text)} has ${name.length} characters as it stands in the DNS; ${allowed}`);
  }
  // Whatever reads it would take 10.1 for an address (RFC 3696, 2; URL Standard, "ends in a number").
  if (/^[0-9]+$/.test(ascii.at(-1) ?? '')) {
    const sentence = `${quote(text)} ends in a number, which no top-level domain is: programs read such a name as an address`;
    return refused('numeric_top_label', `${sentence}; ${allowed}`);
  }
  return { ok: true, name };
}

function readLabel(label: string): string | { readonly sentence: string } {
  if (label === '') return { sentence: 'an empty label, or nothing at all, was received' };
  const stray = /[^\P{ASCII}A-Za-z0-9-]/u.exec(label)?.[0];
  if (stray !== undefined) {
    const hint = stray === '_' ? ' (an underscore is allowed in service names, not in host names)' : '';
    return { sentence: `the label ${quote(label)} holds ${quote(stray)}${hint}` };
  }
  // One label at a time, and none that holds anything but letters, digits, dashes: it also reads URLs' host syntax.
  const name = /^\p{ASCII}*$/u.test(label) ? label.toLowerCase() : domainToASCII(label);
  if (!/^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/.test(name)) {
    const why =
      name === '' ? 'has no form in the DNS (IDNA)' : 'begins or ends with a dash, or holds what is no letter';
    return { sentence: `the label ${quote(label)} ${why}` };
  }
  if (name.length > longestLabel) {
    return { sentence: `the label ${quote(label)} has ${name.length} characters as it stands in the DNS` };
  }
  return name;
}
