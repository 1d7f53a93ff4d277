/**
 * Collector and detection in a process of their own, which a test can stop and let go on. Run as a child: settings and how datagrams are
 * received as arguments; it tells its addresses and the attacks over IPC.
 */
import { randomUUID } from 'node:crypto';
import type { DetectorSettings } from '@levee/contract/detector.ts';
import { createLocalBus } from '../bus/local.ts';
import { startCollector } from '../collect/collector.ts';
import { systemClock } from '../detect/clock.ts';
import { startDetection } from '../detect/detection.ts';

const [settings = '', receive = ''] = process.argv.slice(2);
const told = JSON.parse(settings) as DetectorSettings;
const log = { info: () => undefined, warn: (fields: object, text: string) => console.error(text, fields) };
const bus = createLocalBus();
const collector = await startCollector({
  listen: [{ host: '127.0.0.1', port: 0 }],
  workers: 2,
  bus: bus.collector,
  log,
  receive: receive === 'dgram' ? 'dgram' : 'recvmmsg',
});
const detection = startDetection({
  bus: bus.detector,
  name: 'one',
  clock: systemClock,
  newId: randomUUID,
  report: ({ attacks }) => process.send?.({ attacks }),
  log,
});
bus.detector.send({ type: 'settings', settings: told });
detection.settings(told);
process.send?.({ listening: collector.listening });
process.once('disconnect', () => process.exit());
