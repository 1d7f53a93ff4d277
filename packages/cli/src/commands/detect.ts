/**
 * Owns `levee detect`: one detector in this process, with settings from the configuration. Also the detector that `levee up`
 * supervises.
 */
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type DetectorConfig, type DetectorHandle, startDetector } from '@levee/detector/main.ts';
import closeWithGrace from 'close-with-grace';
import { pino } from 'pino';
import { detectionFault } from '../config/detection-fault.ts';
import { type ConfigOf, settings } from '../config/settings.ts';
import { CommandFailure, type Output } from '../output.ts';
import {
  beatToSupervisor,
  describeNats,
  type FlowsMessage,
  isSupervised,
  onSupervisorGone,
  tellSupervisor,
} from '../supervise/messages.ts';

/** A last report is given a second, sockets and threads close at once. */
const CLOSE_MILLISECONDS = 5_000;
/** How soon a supervisor hears that an address is listened on after all. */
const WATCH_MILLISECONDS = 2_000;
/** NATS is given so long before the start is told without its answer. */
const NATS_MILLISECONDS = 3_000;

export async function runDetector({ config }: { readonly config: ConfigOf<'detect'> }, output: Output): Promise<void> {
  const detector = await startDetectorFrom(config);
  const { close } = closeWithGrace({ delay: CLOSE_MILLISECONDS, logger: false }, async ({ err }) => {
    if (err) output.progress(`internal error: ${err.stack ?? err.message}`);
    await detector.stop();
  });
  onSupervisorGone(close);
  const { listening, refused } = detector;
  beatToSupervisor();
  await natsAnswer(detector);
  if (isSupervised()) return watchFlows(detector);
  const { detectRole: role, detectNats: nats = [] } = config;
  const where = listening.length === 0 ? 'nowhere' : `at ${listening.join(', ')}`;
  const name = role === 'collect' ? 'collector' : 'detector';
  const what = role === 'detect' ? `hears collectors over ${nats.join(', ')}` : `takes flow telemetry ${where}`;
  const standing = natsOfHandle(detector);
  const told = standing === undefined ? [] : [describeNats(standing, nats)];
  const text = [`the ${name} ${what}`, ...told, ...refused].join('\n');
  const connected = standing === undefined ? {} : { nats_connected: standing.connected };
  output.result(text, { role, listen: listening, refused, nats, ...connected, control: config.detectControl });
}

async function natsAnswer({ nats }: DetectorHandle): Promise<void> {
  const deadline = performance.now() + NATS_MILLISECONDS;
  while (nats !== undefined && !nats.connected && nats.problem === undefined && performance.now() < deadline)
    await delay(20);
}

function natsOfHandle({ nats }: DetectorHandle): FlowsMessage['nats'] {
  if (nats === undefined) return undefined;
  const { connected, problem } = nats;
  return { connected, ...(problem !== undefined && { reason: problem }) };
}

/** Tells the supervisor now, and whenever it is no longer true: what was refused is tried again. */
async function watchFlows(detector: DetectorHandle): Promise<void> {
  let told = '';
  const tell = async () => {
    const { listening: listen, refused } = detector;
    const nats = natsOfHandle(detector);
    const now = JSON.stringify([listen, refused, nats?.connected]);
    if (now === told) return;
    told = now;
    await tellSupervisor({ type: 'flows', listen, refused, ...(nats !== undefined && { nats }) });
  };
  setInterval(tell, WATCH_MILLISECONDS).unref();
  await tell();
}

async function startDetectorFrom(config: ConfigOf<'detect'>): Promise<DetectorHandle> {
  const { detectControl, detectKey, flowListen, detectRole: role } = config;
  const fault = detectionFault(config);
  if (fault !== undefined) throw new CommandFailure(fault, 2);
  if (role === 'all' && flowListen.length === 0) {
    throw new CommandFailure(`${settings.flowListen.environment}=off: there is nothing to detect in`, 2);
  }
  if (detectControl === undefined && role !== 'collect') {
    const { environment, toml } = settings.detectControl;
    throw new CommandFailure(`which control plane? Set ${environment} or ${toml}, or give --detect-control`, 2);
  }
  try {
    return await startDetector({
      controlPlanes: detectControl ?? [],
      role,
      nats: natsOf(config),
      stateDirectory: config.detectStateDirectory ?? join(config.dataDirectory, 'detector'),
      listen: flowListen,
      workers: config.detectWorkers,
      key: detectKey,
      logger: pino(
        { level: config.logLevel, base: { process: 'detector' } },
        pino.destination({ dest: 2, sync: true }),
      ),
    });
  } catch (error) {
    throw new CommandFailure(error instanceof Error ? error.message : String(error));
  }
}

function natsOf(config: ConfigOf<'detect'>): DetectorConfig['nats'] {
  if (config.detectRole === 'all' || config.detectNats === undefined) return undefined;
  return {
    servers: config.detectNats,
    name: config.detectNatsName,
    user: config.detectNatsUser,
    password: config.detectNatsPassword,
    token: config.detectNatsToken,
    credentialsFile: config.detectNatsCredentials,
    caFile: config.detectNatsCa,
    certificateFile: config.detectNatsCertificate,
    keyFile: config.detectNatsKey,
  };
}
