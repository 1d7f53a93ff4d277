/**
 * Our collector as a process of its own, so that its time on the processors can be told: listens on any port of 127.0.0.1 and writes a
 * line with the port, then on SIGUSR2 one with what it has counted. Arguments: how it receives, workers, protected prefixes.
 */
import { createLocalBus } from '@levee/detector/bus/local.ts';
import { startCollector } from '@levee/detector/collect/collector.ts';

const [receive = 'auto', workers = '1', prefixes = ''] = process.argv.slice(2);
const bus = createLocalBus();
let samples = 0;
let rows = 0;
bus.detector.onMessage((message) => {
  if (message.type !== 'slot') return;
  rows += message.count;
  for (const value of message.samples) samples += value;
});
const collector = await startCollector({
  listen: [{ host: '127.0.0.1', port: 0 }],
  workers: Number(workers),
  receive: receive === 'dgram' ? 'dgram' : 'recvmmsg',
  bus: bus.collector,
  log: { info: () => undefined, warn: (fields, text) => console.error(text, fields) },
});
const settings = { revision: 1, prefixes: prefixes.split(','), policies: [], exporters: [], ongoing: [] };
bus.detector.send({ type: 'settings', settings: { type: 'settings', ...settings } });
console.log(`listening ${collector.listening[0]}`);
process.on('SIGUSR2', () => {
  const { exporters, kernelDrops } = collector.status();
  const sum = (of: (each: (typeof exporters)[number]) => number) =>
    exporters.reduce((total, each) => total + of(each), 0);
  const datagrams = sum((each) => each.datagrams);
  console.log(
    `counted ${JSON.stringify({ datagrams, records: sum((each) => each.records), samples, rows, kernelDrops })}`,
  );
});
