/**
 * Owns what a template becomes: a flat list of steps (what to fill, where it lies, how long it is), so that reading a record
 * is one loop over numbers. Elements are IANA's (RFC 7012), which NetFlow v9's field types are the beginning of; those of
 * enterprises, RFC 5103's reverse direction among them, are passed over by their length.
 */

/** What a step fills: the cases of `RecordReader`. */
export const Fill = {
  nothing: 0,
  source4: 1,
  destination4: 2,
  source6: 3,
  destination6: 4,
  /** Where a template has both families, the addresses of the other one are zero. */
  source4IfAny: 5,
  destination4IfAny: 6,
  source6IfAny: 7,
  destination6IfAny: 8,
  protocol: 9,
  sourcePort: 10,
  destinationPort: 11,
  tcpFlags: 12,
  icmp: 13,
  icmpType: 14,
  icmpCode: 15,
  fragmentOffset: 16,
  fragmentFlags: 17,
  packets: 18,
  bytes: 19,
  inputInterface: 20,
  outputInterface: 21,
  ttl: 22,
  start: 23,
  end: 24,
  startNtp: 25,
  endNtp: 26,
  duration: 27,
  oneIn: 28,
  sampledRun: 29,
  skippedRun: 30,
  sampleSize: 31,
  population: 32,
  probability: 33,
  selector: 34,
  selection: 35,
  selectorOfSelection: 36,
  algorithm: 37,
  domain: 38,
  template: 39,
  ipSection: 40,
  frameSection: 41,
  sectionOctets: 42,
  frameSize: 43,
  ipTotalLength: 44,
} as const;

export const VARIABLE = 0xffff;
export const MOST_FIELDS = 256;
/** An element that nothing is read of. */
export const SKIPPED = -1;

export interface Field {
  readonly element: number;
  /** Octets; `VARIABLE`: told in each record (RFC 7011, 7). */
  readonly length: number;
}

/** Of the elements in a row, the first that a template has is taken; lengths in octets. */
const choices: readonly { fill: number; elements: readonly number[]; shortest: number; longest: number }[] = [
  { fill: Fill.protocol, elements: [4], shortest: 1, longest: 1 },
  { fill: Fill.sourcePort, elements: [7, 180, 182], shortest: 1, longest: 4 },
  { fill: Fill.destinationPort, elements: [11, 181, 183], shortest: 1, longest: 4 },
  { fill: Fill.tcpFlags, elements: [6], shortest: 1, longest: 2 },
  { fill: Fill.icmpType, elements: [176], shortest: 1, longest: 1 },
  { fill: Fill.icmpType, elements: [178], shortest: 1, longest: 1 },
  { fill: Fill.icmpCode, elements: [177], shortest: 1, longest: 1 },
  { fill: Fill.icmpCode, elements: [179], shortest: 1, longest: 1 },
  { fill: Fill.icmp, elements: [32], shortest: 2, longest: 2 },
  { fill: Fill.icmp, elements: [139], shortest: 2, longest: 2 },
  { fill: Fill.fragmentOffset, elements: [88], shortest: 1, longest: 2 },
  { fill: Fill.fragmentFlags, elements: [197], shortest: 1, longest: 1 },
  // What was observed, before what was sent on; then the initiator's, of firewalls.
  { fill: Fill.packets, elements: [2, 86, 24, 172, 298], shortest: 1, longest: 8 },
  { fill: Fill.bytes, elements: [1, 85, 23, 171, 231], shortest: 1, longest: 8 },
  { fill: Fill.inputInterface, elements: [10, 252], shortest: 1, longest: 4 },
  { fill: Fill.outputInterface, elements: [14, 253], shortest: 1, longest: 4 },
  { fill: Fill.ttl, elements: [192, 52], shortest: 1, longest: 1 },
  { fill: Fill.oneIn, elements: [34, 50], shortest: 1, longest: 8 },
  { fill: Fill.sampledRun, elements: [305, 307], shortest: 1, longest: 8 },
  { fill: Fill.skippedRun, elements: [306, 308], shortest: 1, longest: 8 },
  { fill: Fill.sampleSize, elements: [309], shortest: 1, longest: 8 },
  { fill: Fill.population, elements: [310], shortest: 1, longest: 8 },
  { fill: Fill.probability, elements: [311], shortest: 4, longest: 8 },
  { fill: Fill.selection, elements: [301], shortest: 1, longest: 8 },
  { fill: Fill.selector, elements: [302, 48], shortest: 1, longest: 8 },
  { fill: Fill.sectionOctets, elements: [410], shortest: 1, longest: 2 },
  { fill: Fill.frameSize, elements: [312], shortest: 1, longest: 4 },
  { fill: Fill.ipTotalLength, elements: [224], shortest: 1, longest: 8 },
];

const optionChoices: typeof choices = [
  { fill: Fill.algorithm, elements: [304], shortest: 1, longest: 2 },
  { fill: Fill.domain, elements: [149], shortest: 1, longest: 4 },
  { fill: Fill.template, elements: [145], shortest: 2, longest: 2 },
];

/** A flow's first and last instant, the most exact first. `factor`: how many of the unit are a millisecond. */
const instants: readonly { start: number; end: number; isNtp: boolean; factor: number }[] = [
  { start: 152, end: 153, isNtp: false, factor: 1 },
  { start: 154, end: 155, isNtp: true, factor: 1 },
  { start: 156, end: 157, isNtp: true, factor: 1 },
  // So long before the export: the earlier instant is the greater number.
  { start: 159, end: 158, isNtp: false, factor: 1000 },
  { start: 22, end: 21, isNtp: false, factor: 1 },
  { start: 150, end: 151, isNtp: false, factor: 0.001 },
];

export class Template {
  readonly id: number;
  readonly isOptions: boolean;
  /** As it came, so that a repetition is known as one. */
  readonly specifiers: Uint8Array;
  /** Octets of a record; of variable ones, the least. */
  readonly recordLength: number;
  readonly isVariable: boolean;
  /** Fixed: (fill, offset, length) of what is read. Variable: (fill, ignored, length or VARIABLE) of every field. */
  readonly steps: Int32Array;
  readonly hasDestination: boolean;
  readonly hasPackets: boolean;
  readonly hasSection: boolean;
  readonly hasInstants: boolean;
  /** Of the system's uptime, which begins again after 2^32 milliseconds. */
  readonly instantsWrap: boolean;
  readonly timeFactor: number;
  readonly hasOwnSampling: boolean;
  /** Anything that few templates have, and that is not of `FlowRecord` itself. */
  readonly hasRare: boolean;
  /** When it was told last. */
  definedMs: number;
  /** 0: nothing was told of this template alone. */
  samplingRate = 0;

  constructor(id: number, isOptions: boolean, fields: readonly Field[], specifiers: Uint8Array, nowMs: number) {
    this.id = id;
    this.isOptions = isOptions;
    this.specifiers = specifiers;
    this.definedMs = nowMs;
    this.isVariable = fields.some((field) => field.length === VARIABLE);
    this.recordLength = fields.reduce((sum, { length }) => sum + (length === VARIABLE ? 1 : length), 0);
    const { fills, timeFactor, instantsWrap } = chooseFills(fields, isOptions);
    const has = (...wanted: number[]) => fills.some((fill) => wanted.includes(fill));
    this.hasDestination = has(Fill.destination4, Fill.destination6, Fill.destination4IfAny);
    this.hasPackets = has(Fill.packets);
    this.hasSection = has(Fill.ipSection, Fill.frameSection);
    this.hasInstants = has(Fill.start, Fill.startNtp);
    this.hasOwnSampling = has(Fill.oneIn, Fill.sampledRun, Fill.sampleSize, Fill.probability);
    const rare: readonly number[] = [Fill.icmpType, Fill.icmpCode, Fill.fragmentOffset, Fill.fragmentFlags];
    this.hasRare =
      isOptions || fills.some((fill) => (fill >= Fill.oneIn && fill !== Fill.selector) || rare.includes(fill));
    this.timeFactor = timeFactor;
    this.instantsWrap = instantsWrap;
    const steps: number[] = [];
    let offset = 0;
    fields.forEach(({ length }, index) => {
      const fill = fills[index] as number;
      if (this.isVariable || fill !== Fill.nothing) steps.push(fill, offset, length);
      offset += length;
    });
    this.steps = Int32Array.from(steps);
  }
}

function chooseFills(fields: readonly Field[], isOptions: boolean) {
  const fills = fields.map((): number => Fill.nothing);
  let timeFactor = 1;
  let instantsWrap = false;
  const find = (element: number, shortest: number, longest: number) =>
    fields.findIndex((field) => field.element === element && field.length >= shortest && field.length <= longest);
  const put = (index: number, fill: number) => {
    if (index >= 0) fills[index] = fill;
  };
  for (const { fill, elements, shortest, longest } of isOptions ? [...choices, ...optionChoices] : choices) {
    const place = elements.map((element) => find(element, shortest, longest)).find((index) => index >= 0);
    if (place !== undefined) put(place, fill);
  }

  const isMixed = find(12, 4, 4) >= 0 && find(28, 16, 16) >= 0;
  put(find(8, 4, 4), isMixed ? Fill.source4IfAny : Fill.source4);
  put(find(12, 4, 4), isMixed ? Fill.destination4IfAny : Fill.destination4);
  put(find(27, 16, 16), isMixed ? Fill.source6IfAny : Fill.source6);
  put(find(28, 16, 16), isMixed ? Fill.destination6IfAny : Fill.destination6);

  const pair = instants.find(
    ({ start, end, isNtp }) => find(start, isNtp ? 8 : 1, 8) >= 0 && find(end, isNtp ? 8 : 1, 8) >= 0,
  );
  if (find(161, 1, 8) >= 0) {
    put(find(161, 1, 8), Fill.duration);
  } else if (find(162, 1, 8) >= 0) {
    put(find(162, 1, 8), Fill.duration);
    timeFactor = 1000;
  } else if (pair !== undefined) {
    put(find(pair.start, 1, 8), pair.isNtp ? Fill.startNtp : Fill.start);
    put(find(pair.end, 1, 8), pair.isNtp ? Fill.endNtp : Fill.end);
    timeFactor = pair.factor;
    instantsWrap = pair.start === 22;
  }

  // PSAMP (RFC 5477): from the IP header on, else the frame; 104 is Cisco's number for the latter.
  const ipSection = find(313, 1, VARIABLE);
  if (ipSection >= 0) put(ipSection, Fill.ipSection);
  else put(Math.max(find(315, 1, VARIABLE), find(104, 1, VARIABLE)), Fill.frameSection);

  // Which selectors a packet has passed one after the other (RFC 5476, 6.5.1).
  if (isOptions && fills.includes(Fill.selection)) {
    fields.forEach(({ element, length }, index) => {
      if (element === 302 && length <= 8) fills[index] = Fill.selectorOfSelection;
    });
  }
  return { fills, timeFactor, instantsWrap };
}
