/** Tunnels in a kernel that has them: in a guest, because many machines' own has none. The tests are in `tunnels.guest.ts`. */
import { globSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { guestObstacle } from '@levee/lab/guest/guest.ts';
import { runTestsInGuest } from '@levee/lab/guest/guest-tests.ts';

const root = join(import.meta.dirname, '..', '..');
/** The edge, and what the tests import besides. */
const programs = [
  ...['main.ts', 'testing/control-plane.ts'].map((path) => join(root, 'packages', 'edge', 'src', path)),
  ...['network.ts', 'flows.ts'].map((path) => join(import.meta.dirname, path)),
];

/** What the programs are made of, as far as it is known beforehand; the rest comes over 9p. */
const near = [
  ...globSync('packages/{contract,core,edge,lab}/{src,package.json}', { cwd: root }),
  ...globSync('node_modules/{koffi,@koromix,pino,pino-std-serializers,sonic-boom,@pinojs}', { cwd: root }),
  'e2e/tunnel-kernel',
].map((path) => join(root, path));

test('tunnels in a kernel that has them', { skip: guestObstacle() ?? false, timeout: 5 * 60_000 }, (t) =>
  runTestsInGuest(t, {
    file: join(import.meta.dirname, 'tunnels.guest.ts'),
    directory: root,
    modules:
      'veth ip_gre ip6_gre geneve nf_tables nft_ct nft_limit nft_hash nft_fib_inet nft_reject_inet nft_synproxy'.split(
        ' ',
      ),
    near,
    programs,
    deadlineMilliseconds: 4 * 60_000,
  }),
);
