/** The reconciler on this machine's own kernel, whatever it has. Kernels that have it all: e2e/tunnel-kernel. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { pino } from 'pino';
import { enterOwnNamespace, nft } from '../testing/own-namespace.ts';
import { tunnelOf } from '../testing/tunnels.ts';
import { until } from '../testing/until.ts';
import { openTunnels } from './open.ts';

const skip = enterOwnNamespace() ?? false;

/** Asks the kernel itself. */
function has(kind: string): boolean {
  const made = spawnSync('ip', ['link', 'add', 'trial', 'type', ...kind.split(' ')], { encoding: 'utf8' });
  spawnSync('ip', ['link', 'del', 'trial']);
  return made.status === 0;
}

test('a kernel that lacks a kind of tunnel fails those, says which module is missing, and goes on', {
  skip,
}, async (t) => {
  const ipv6 = { endpoint: '2001:db8::9', local_endpoint: '2001:db8::1' };
  const kinds = [
    { tunnel: tunnelOf(1), module: 'ip_gre', present: has('gre local 203.0.113.1 remote 198.51.100.9 key 9') },
    { tunnel: tunnelOf(2, ipv6), module: 'ip6_gre', present: has('ip6gre local 2001:db8::1 remote 2001:db8::7 key 9') },
    { tunnel: tunnelOf(3, { type: 'Geneve' }), module: 'geneve', present: has('geneve id 9 remote 198.51.100.9') },
  ];
  spawnSync('ip', ['address', 'add', '203.0.113.1/32', 'dev', 'lo']);
  spawnSync('ip', ['address', 'add', '2001:db8::1/128', 'dev', 'lo', 'nodad']);
  const reconciler = openTunnels(
    {
      nftVersion: '1.0.6',
      checkMilliseconds: 60_000,
      retryMilliseconds: 60_000,
      probeMilliseconds: 60_000,
      logger: pino({ level: 'silent' }),
    },
    { changed: () => undefined },
  );
  t.after(() => reconciler.stop());
  await reconciler.start(new Map());
  reconciler.want(new Map(kinds.map(({ tunnel }) => [tunnel.uuid, tunnel])), 1);
  await until('all are in force or among the failures', () => reconciler.applied === 1);
  assert.deepEqual(
    reconciler.failures(),
    kinds.flatMap(({ tunnel, module, present }) =>
      present ? [] : [{ uuid: tunnel.uuid, reason: `kernel lacks ${module}` }],
    ),
  );
  assert.match(nft('list tables\n'), /levee_tunnel/);
  reconciler.want(new Map(), 2);
  await until('they are gone', () => reconciler.applied === 2);
  assert.equal(nft('list tables\n'), '');
  assert.deepEqual(reconciler.failures(), []);
});
