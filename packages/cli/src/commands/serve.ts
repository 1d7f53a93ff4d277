/** Owns `levee serve`: the control plane in this process; also the one that `levee up` supervises. */
import { prefixFromTrusted } from '@levee/core/net/prefix-text.ts';
import { type ServerHandle, startServer } from '@levee/server/main.ts';
import closeWithGrace from 'close-with-grace';
import { pino } from 'pino';
import type { ConfigOf } from '../config/settings.ts';
import { addressAndPort, hostAndPort } from '../config/value-types.ts';
import { CommandFailure, type Output } from '../output.ts';
import { beatToSupervisor, isSupervised, onSupervisorGone, tellSupervisor } from '../supervise/messages.ts';
import { leaveDetectorKey, leaveRouterKey } from './local-keys.ts';

/** Requests under way are finished, streams are ended, PostgreSQL writes what it holds. */
const CLOSE_MILLISECONDS = 14_000;

/** State directories of what runs on this machine: its router, or its detector, is made known, and its key left there. */
export interface LocalParts {
  readonly localRouter?: string;
  readonly localDetector?: string;
}

export async function serve(
  { config }: { readonly config: ConfigOf<'serve'> },
  output: Output,
  { localRouter, localDetector }: LocalParts,
): Promise<void> {
  const server = await start(config);
  const { close } = closeWithGrace({ delay: CLOSE_MILLISECONDS, logger: false }, async ({ err }) => {
    if (err) output.progress(`internal error: ${err.stack ?? err.message}`);
    await server.close();
  });
  onSupervisorGone(close);
  // A key that the operator chose is no news to them.
  const key = config.operatorKey === undefined ? server.newOperatorKey : undefined;
  const routerKeyChanged =
    localRouter !== undefined && (await leaveRouterKey(server.database, localRouter, config.dataDirectory));
  const detectorKeyChanged =
    localDetector !== undefined && (await leaveDetectorKey(server.database, localDetector, config.dataDirectory));
  // Whoever asks at once then waits for our own router, instead of hearing that there is none.
  if (localRouter !== undefined) await server.routersChanged();
  const { address } = server;
  const dns = (server.dns?.addresses ?? []).map(hostAndPort.write);
  beatToSupervisor();
  if (!isSupervised()) {
    const text = `the control plane answers at ${address}/v1${key === undefined ? '' : `\noperator key ${key}`}`;
    output.result(text, {
      address,
      interface: `${address}/v1`,
      dns,
      ...(key === undefined ? {} : { operator_key: key }),
    });
    return;
  }
  await tellSupervisor({
    type: 'ready',
    address,
    dns,
    routerKeyChanged,
    detectorKeyChanged,
    ...(key === undefined ? {} : { newOperatorKey: key }),
  });
}

async function start(config: ConfigOf<'serve'>): Promise<ServerHandle> {
  const {
    listen,
    trustedProxies,
    dataDirectory,
    databaseUrl,
    operatorKey,
    rateLimit,
    auditKeepDays,
    attackKeepDays,
    flowspecBudget,
    tunnelInnerIpv4,
    tunnelInnerIpv6,
    dnsListen,
    dnsAnswersPerSecond,
    dnsResolvers,
    webhookAllow,
    logLevel,
    gobgp,
    bgpExabgp,
    bgpMark,
    bgpBlackholeNextHopIpv4,
    bgpBlackholeNextHopIpv6,
    bgpBlackholeExport,
  } = config;
  const log = pino({ level: logLevel, base: { process: 'control' } }, pino.destination({ dest: 2, sync: true }));
  try {
    const started = await startServer({
      listen,
      trustedProxies,
      dataDirectory,
      databaseUrl,
      operatorKey,
      rateLimit,
      auditKeepDays,
      attackKeepDays,
      flowspecBudget,
      innerPools: { ipv4: prefixFromTrusted(tunnelInnerIpv4), ipv6: prefixFromTrusted(tunnelInnerIpv6) },
      ...(dnsListen.length > 0 && { dns: { listen: dnsListen, answersPerSecond: dnsAnswersPerSecond } }),
      dnsResolvers: dnsResolvers?.map(addressAndPort.write),
      webhookAllow,
      bgp: {
        gobgp,
        exabgp: bgpExabgp,
        routes: {
          mark: bgpMark,
          nextHopIpv4: prefixFromTrusted(bgpBlackholeNextHopIpv4),
          nextHopIpv6: prefixFromTrusted(bgpBlackholeNextHopIpv6),
          noExport: bgpBlackholeExport === 'off',
        },
      },
      log,
    });
    if (started.ok) return started.server;
    throw new CommandFailure(started.message);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    // What the network says about a database elsewhere; anything else without a code is a bug and shows its trace.
    if (error instanceof CommandFailure || code === undefined) throw error;
    throw new CommandFailure(`the database cannot be used: ${message || code}`);
  }
}
