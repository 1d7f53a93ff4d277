/** Puts the reconciler together with the real kernel: ip(8), nft(8) and ICMP sockets. Decides nothing. */
import type { Logger } from 'pino';
import { openLinkCommand } from '../drivers/link/command.ts';
import { openNftCommand } from '../drivers/nft/command.ts';
import { readForwarding } from '../status/forwarding.ts';
import { tunnelCapabilities } from './capabilities.ts';
import { routeProtocol } from './ip-lines.ts';
import type { TunnelReconciler, TunnelReconcilerEvents } from './port.ts';
import { openEchoSocket } from './probe/echo-socket.ts';
import { createProber, usualPace } from './probe/prober.ts';
import { createTunnelReconciler } from './reconciler.ts';

export interface TunnelSettings {
  /** Of nftables, as `1.0.6`. */
  readonly nftVersion: string;
  /** Between two looks at what the kernel has. */
  readonly checkMilliseconds: number;
  /** After what could not be asked or done at all. */
  readonly retryMilliseconds: number;
  /** Between two probes of a tunnel. */
  readonly probeMilliseconds: number;
  readonly logger: Logger;
}

export function openTunnels(settings: TunnelSettings, events: TunnelReconcilerEvents): TunnelReconciler {
  const { nftVersion, probeMilliseconds, ...rest } = settings;
  return createTunnelReconciler(
    {
      links: openLinkCommand(routeProtocol),
      nft: openNftCommand(nftVersion),
      prober: createProber({
        ...usualPace,
        intervalMilliseconds: probeMilliseconds,
        openSocket: openEchoSocket,
        now: () => performance.now(),
      }),
      capabilities: tunnelCapabilities,
      forwarding: readForwarding,
      ...rest,
    },
    events,
  );
}
