/** Captures of flow datagrams beside the tests: four octets of length, then the UDP payload, again and again. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export function readDatagrams(name: string): Buffer[] {
  const file = readFileSync(join(import.meta.dirname, '..', 'fixtures', name));
  const datagrams: Buffer[] = [];
  for (let at = 0; at < file.length; ) {
    const length = file.readUInt32BE(at);
    datagrams.push(file.subarray(at + 4, at + 4 + length));
    at += 4 + length;
  }
  return datagrams;
}

export const fixtures = [
  'ovs_nf5.first200.dgs',
  'pmacct_nf5.first200.dgs',
  'softflowd_nf5.first200.dgs',
  'pmacct_nf9.first200.dgs',
  'softflowd_nf9_s16.first200.dgs',
  'softflowd_ipfix_s16.first200.dgs',
  'pmacct_ipfix_s8.dgs',
  'softflowd_ipfix_bi.dgs',
  'softflowd_psamp.dgs',
  'pmacct_sflow5_s16.first200.dgs',
  'pmacct_sflow5_vlan.dgs',
] as const;
