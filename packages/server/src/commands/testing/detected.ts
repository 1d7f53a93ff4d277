/** What a detector tells of an attack, for tests: a DNS amplification with everything that can be told. Test code only. */
import type { DetectedAttack, PacketSample, VectorProfile } from '@levee/contract/detector.ts';
import { newUuid } from '../../store/new-uuid.ts';

export function detectedAttack(dst: string, startedMs: number, more: Partial<DetectedAttack> = {}): DetectedAttack {
  return {
    id: newUuid(),
    dst,
    phase: 'started',
    vectors: ['udp-amplification'],
    started_ms: startedMs,
    detected_ms: startedMs + 250,
    measured: { at_ms: startedMs + 250, pps: 48_000, bps: 537_600_000 },
    packets: 12_000,
    bytes: 16_800_000,
    sampled: 750,
    threshold: { policy: 'default', vector: 'udp-amplification', metric: 'pps', value: 10_000, observed: 48_000 },
    profile: [amplification()],
    timeline: [],
    packet_samples: [],
    entries: [
      { exporter: '192.0.2.1', interface: 7, share: 0.8 },
      { exporter: '192.0.2.2', share: 0.2 },
    ],
    ...more,
  };
}

function amplification(): VectorProfile {
  return {
    vector: 'udp-amplification',
    pps: 48_000,
    bps: 537_600_000,
    peak_pps: 48_000,
    peak_bps: 537_600_000,
    samples: 750,
    protocols: [{ value: 17, share: 1 }],
    source_ports: [{ value: 53, share: 1 }],
    destination_ports: [{ value: 40_000, share: 0.25 }],
    icmp: [],
    tcp_flags: [],
    length: { min: 1_200, p5: 1_300, max: 1_500 },
    later_fragments: 0.1,
    sources: [
      { value: '198.51.100.9', share: 0.5 },
      { value: '198.51.100.10', share: 0.25 },
    ],
    distinct_sources: 40,
    destinations: [],
  };
}

const word = (value: number) => [(value >>> 8) & 255, value & 255];

/** A DNS answer of 1400 octets from 198.51.100.`host`, of which 128 were sampled. */
export function sampleOf(dst: string, atMs: number, host = 9, more: Partial<PacketSample> = {}): PacketSample {
  const start = [0x45, 0, ...word(1400), 0, host, 0, 0, 64, 17, 0, 0, 198, 51, 100, host];
  const octets = [...start, ...dst.split('.').map(Number), ...word(53), ...word(40_000), ...word(1380), 0, 0];
  const header = Buffer.from([...octets, ...Array<number>(128 - octets.length).fill(host)]).toString('base64');
  return { at_ms: atMs, scale: 16, exporter: '192.0.2.1', input_interface: 7, length: 1400, header, ...more };
}
