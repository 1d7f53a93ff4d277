/**
 * Conditions on a payload in nft's words that several kinds write. Pure text; what they mean for a protocol is the kind's.
 */

/**
 * The packet holds at least so many octets behind the transport's header: a load beyond its end does not match, whatever
 * it would be compared with. What UDP's own length field says is not asked: a packet may be cut off. At most 256: kernels
 * before 6.18 refuse to load from behind the 255th octet.
 */
export function reaches(octets: number): string {
  if (octets > 256) throw new RangeError(`octet ${octets} cannot be loaded`);
  return `@ih,${(octets - 1) * 8},8 & 0x0 == 0x0`;
}

/** Two lines for a form that has one length: `form` is what the packet begins with, then come the outcomes of both. */
export function ofExactly(octets: number, form: string, outcome: string, longer: string): string[] {
  return [`${form} ${reaches(octets + 1)} ${longer}`, `${form} ${reaches(octets)} ${outcome}`];
}

/** UDP's length field counts its header of 8 octets: the payload is whole words of 32 bits when the field says so. */
export const wholeWords = '@th,32,16 & 0x3 == 0x0';
