/**
 * Owns `levee edge`: one router's edge in this process, with settings from the configuration. Also the edge that
 * `levee up` supervises.
 */
import { join } from 'node:path';
import { type EdgeHandle, startEdge } from '@levee/edge/main.ts';
import closeWithGrace from 'close-with-grace';
import { pino } from 'pino';
import { type ConfigOf, settings } from '../config/settings.ts';
import { CommandFailure, type Output } from '../output.ts';
import { beatToSupervisor, isSupervised, onSupervisorGone, tellSupervisor } from '../supervise/messages.ts';

/** How soon a supervisor hears that the kernel refuses what it took before. */
const WATCH_MILLISECONDS = 2_000;

export async function runEdge({ config }: { readonly config: ConfigOf<'edge'> }, output: Output): Promise<void> {
  const edge = await startEdgeFrom(config);
  const { close } = closeWithGrace({ delay: 12_000, logger: false }, async ({ err }) => {
    if (err) output.progress(`internal error: ${err.stack ?? err.message}`);
    await edge.stop();
  });
  onSupervisorGone(close);
  beatToSupervisor();
  if (!isSupervised()) {
    const { mode, reason } = edge.enforcement;
    const text = mode === 'kernel' ? 'the edge enforces in the kernel' : `the edge enforces nothing: ${reason}`;
    output.result(text, { enforcement: edge.enforcement, control: config.edgeControl });
    return;
  }
  await watchEnforcement(edge);
}

async function startEdgeFrom(config: ConfigOf<'edge'>): Promise<EdgeHandle> {
  const { edgeControl, edgeDriver, edgeRouterKey, edgeIngressDevices } = config;
  if (edgeDriver === 'off')
    throw new CommandFailure(`${settings.edgeDriver.environment}=off: there is no edge to run`, 2);
  if (edgeControl === undefined) {
    const { environment, toml } = settings.edgeControl;
    throw new CommandFailure(`which control plane? Set ${environment} or ${toml}, or give --edge-control`, 2);
  }
  try {
    return await startEdge({
      controlPlanes: edgeControl,
      stateDirectory: edgeStateDirectory(config),
      driver: edgeDriver,
      logger: pino({ level: config.logLevel, base: { process: 'edge' } }, pino.destination({ dest: 2, sync: true })),
      ...(edgeRouterKey === undefined ? {} : { key: edgeRouterKey }),
      ...(edgeIngressDevices === undefined ? {} : { ingressDevices: edgeIngressDevices }),
    });
  } catch (error) {
    throw new CommandFailure(error instanceof Error ? error.message : String(error));
  }
}

export function edgeStateDirectory({ edgeStateDirectory, dataDirectory }: ConfigOf<'edge'>): string {
  return edgeStateDirectory ?? join(dataDirectory, 'edge');
}

/** Tells the supervisor now, and whenever it is no longer true. */
async function watchEnforcement(edge: EdgeHandle): Promise<void> {
  let told = '';
  const tell = async () => {
    const { mode, reason } = edge.enforcement;
    const now = JSON.stringify([mode, reason]);
    if (now === told) return;
    told = now;
    await tellSupervisor({ type: 'enforcement', mode, ...(reason === undefined ? {} : { reason }) });
  };
  setInterval(tell, WATCH_MILLISECONDS).unref();
  await tell();
}
