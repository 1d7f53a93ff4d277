/**
 * Owns `levee detect`: one detector in this process, with settings from the configuration. Also the detector that `levee up`
 * supervises.
 */
import { join } from 'node:path';
import { type DetectorConfig, type DetectorHandle, startDetector } from '@levee/detector/main.ts';
import closeWithGrace from 'close-with-grace';
import { pino } from 'pino';
import { type ConfigOf, settings } from '../config/settings.ts';
import { CommandFailure, type Output } from '../output.ts';
import { beatToSupervisor, isSupervised, onSupervisorGone, tellSupervisor } from '../supervise/messages.ts';

/** A last report is given a second, sockets and threads close at once. */
const CLOSE_MILLISECONDS = 5_000;
/** How soon a supervisor hears that an address is listened on after all. */
const WATCH_MILLISECONDS = 2_000;

export async function runDetector({ config }: { readonly config: ConfigOf<'detect'> }, output: Output): Promise<void> {
  const detector = await startDetectorFrom(config);
  const { close } = closeWithGrace({ delay: CLOSE_MILLISECONDS, logger: false }, async ({ err }) => {
    if (err) output.progress(`internal error: ${err.stack ?? err.message}`);
    await detector.stop();
  });
  onSupervisorGone(close);
  const { listening, refused } = detector;
  beatToSupervisor();
  if (isSupervised()) return watchFlows(detector);
  const { detectRole: role, detectNats: nats = [] } = config;
  const where = listening.length === 0 ? 'nowhere' : `at ${listening.join(', ')}`;
  const name = role === 'collect' ? 'collector' : 'detector';
  const what = role === 'detect' ? `hears collectors over ${nats.join(', ')}` : `takes flow telemetry ${where}`;
  const text = [`the ${name} ${what}`, ...refused].join('\n');
  output.result(text, { role, listen: listening, refused, nats, control: config.detectControl });
}

/** Tells the supervisor now, and whenever it is no longer true: what was refused is tried again. */
async function watchFlows(detector: DetectorHandle): Promise<void> {
  let told = '';
  const tell = async () => {
    const { listening: listen, refused } = detector;
    const now = JSON.stringify([listen, refused]);
    if (now === told) return;
    told = now;
    await tellSupervisor({ type: 'flows', listen, refused });
  };
  setInterval(tell, WATCH_MILLISECONDS).unref();
  await tell();
}

async function startDetectorFrom(config: ConfigOf<'detect'>): Promise<DetectorHandle> {
  const { detectControl, detectKey, flowListen, detectRole: role } = config;
  if (role !== 'detect' && flowListen.length === 0) {
    throw new CommandFailure(`${settings.flowListen.environment}=off: there is nothing to detect in`, 2);
  }
  if (role !== 'all' && config.detectNats === undefined) {
    const { environment, toml } = settings.detectNats;
    throw new CommandFailure(
      `${settings.detectRole.environment}=${role} needs a NATS: set ${environment} or ${toml}, or give --detect-nats`,
      2,
    );
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
