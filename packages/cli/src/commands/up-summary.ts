/** Owns the words of `levee up`, once everything runs. Pure. */
import { join } from 'node:path';
import type { Config } from '../config/settings.ts';
import type { Enforcement, Flows, Running } from '../supervise/installation.ts';
import { describeNats } from '../supervise/messages.ts';
import { version } from '../version.ts';

/** Lines for people, and the same as a value for programs. */
export function renderUp(
  { ready, enforcement, flows }: Omit<Running, 'stop'>,
  config: Config,
  seconds: number,
): { text: string; value: object } {
  const keyFile = join(config.dataDirectory, 'operator.key');
  const { address, dns, newOperatorKey } = ready;
  const rows: [string, string][] = [
    ['interface', `${address}/v1`],
    ['description', `${address}/docs`],
  ];
  if (newOperatorKey !== undefined) {
    rows.push(['operator key', newOperatorKey], ['', `made just now and kept in ${keyFile}; it is not printed again`]);
  }
  rows.push(['reverse DNS', dns.length === 0 ? 'not served here' : `${dns.join(', ')} (zones of the driver embedded)`]);
  rows.push(['flows', flowsText(flows)]);
  const detection = detectionText(flows, config);
  if (detection !== undefined) rows.push(['detection', detection]);
  const speaker = speakerText(config);
  if (speaker !== undefined) rows.push(['BGP speaker', speaker]);
  rows.push(['enforcement', describeEnforcement(enforcement, config.edgeNetns)]);
  if (newOperatorKey !== undefined && enforcement.mode === 'kernel') {
    rows.push(['see it work', 'npm run levee -- lab   (a real flood, and a rule that stops it)']);
  }
  const lines = rows.map(([name, text]) => `  ${name.padEnd(13)} ${text}`);
  return {
    text: [`Levee ${version} is up (${seconds.toFixed(1)} s)`, ...lines].join('\n'),
    value: {
      version,
      address,
      interface: `${address}/v1`,
      description: `${address}/docs`,
      ...(newOperatorKey === undefined ? {} : { operator_key: newOperatorKey }),
      operator_key_file: keyFile,
      dns,
      flows,
      detect_role: config.detectRole,
      ...(speaker === undefined ? {} : { speaker }),
      enforcement,
    },
  };
}

function describeEnforcement({ mode, reason }: Enforcement, namespace: string | undefined): string {
  if (mode !== 'kernel') return `NOTHING IS ENFORCED: ${reason ?? 'no reason was given'}; rules stay pending`;
  const where = namespace === undefined ? 'on this machine' : `in the network namespace ${namespace}`;
  return `in the kernel, ${where}`;
}

/** Whether it answers is not known yet: the control plane waits for it as long as it takes. */
function speakerText({ gobgp, bgpExabgp }: Config): string | undefined {
  const told = 'flowrules are announced through it; how it does: GET /v1/operator/speaker';
  if (gobgp !== undefined) return `gobgpd at ${gobgp} (${told})`;
  return bgpExabgp === undefined ? undefined : `ExaBGP by \`levee exabgp\` at ${bgpExabgp} (${told})`;
}

/** Of a part of a detection that is divided; undefined: all of it is here, or none. */
function detectionText({ nats }: Flows, { detectRole: role, detectNats = [] }: Config): string | undefined {
  if (role === 'all') return undefined;
  const standing = describeNats(nats ?? { connected: false, reason: 'it has not said yet' }, detectNats);
  return role === 'collect'
    ? `collects for NATS; NO DETECTOR HERE, attacks are found by those on it; ${standing}`
    : `detects a share of what collectors tell over NATS; ${standing}`;
}

function flowsText({ listen, refused }: Flows): string {
  if (listen.length === 0 && refused.length === 0) return 'not taken here';
  const taken = listen.length === 0 ? 'NONE ARE TAKEN' : `${listen.join(', ')} (sFlow, NetFlow, IPFIX over UDP)`;
  return [taken, ...refused].join('; ');
}
