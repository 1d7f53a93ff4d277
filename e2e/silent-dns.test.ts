/**
 * Guarantees about DNS servers from which nothing comes back, as when a machine or the way to it is gone: on a whole control
 * plane, with real servers in a network of the test's own where packets to them are dropped.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { enterOwnNamespace, nft } from '@levee/edge/testing/own-namespace.ts';
import { digPointers } from '@levee/server/backends/rdns/testing/dig.ts';
import { bindPrimary, type Primary, powerDnsPrimary, testKey } from '@levee/server/backends/rdns/testing/primaries.ts';
import { waitUntil } from '@levee/server/store/testing/wait-until.ts';
import { type ServedLevee, serveLevee } from './served-levee.ts';

const missing = enterOwnNamespace();
const bindZone = '113.0.203.in-addr.arpa';
const powerZone = '100.51.198.in-addr.arpa';

describe('a DNS server that is silent', { skip: missing ?? false }, () => {
  let levee: ServedLevee;
  let bind: Primary;
  let power: Primary;
  let user: string;
  let sets = 0;

  before(async () => {
    [bind, power] = await Promise.all([bindPrimary([bindZone]), powerDnsPrimary([powerZone])]);
    await Promise.all([bind.start(), power.start()]);
    levee = await serveLevee();
    const { operatorKey } = levee;
    const updates = { zone: bindZone, driver: 'rfc2136', server: `127.0.0.1:${bind.port}`, tsig: testKey };
    const web = { zone: powerZone, driver: 'powerdns', server: power.url, api_key: power.apiKey };
    for (const zone of [updates, web]) await levee.good('POST', '/operator/rdns-zone', operatorKey, zone);
    const prefixes = ['203.0.113.0/24', '198.51.100.0/24'];
    const provider = await levee.good('POST', '/operator/provider', operatorKey, { name: 'p', prefixes });
    user = await levee.keyOf(provider.uuid);
    await apart(await put(1));
  });
  after(async () => {
    await levee?.stop();
    await Promise.all([bind?.remove(), power?.remove()]);
  });

  /** Packets to both servers are dropped until it is called. */
  function silence(): () => void {
    const apiPort = new URL(power.url ?? '').port;
    const rule = `tcp dport { ${bind.port}, ${apiPort} } drop`;
    nft(`table inet silence { chain input { type filter hook input priority 0; ${rule}; }; }`);
    return () => void nft('delete table inet silence');
  }

  const addresses = (last: number) => [`203.0.113.${last}`, `198.51.100.${last}`];

  /** Gives both servers a record of the number; resolves with what to wait for. */
  async function put(last: number): Promise<readonly (() => Promise<boolean>)[]> {
    const name = `set${++sets}.example.net`;
    const begun = performance.now();
    for (const ips of addresses(last)) {
      const { state } = await levee.good('POST', '/rdns', user, { ips, record: name });
      assert.equal(state, 'pending');
    }
    assert.ok(performance.now() - begun < 1_000, 'answered at once');
    return [
      async () => (await digPointers(bind.port, `${last}.${bindZone}`)).join() === name,
      async () => (await digPointers(power.port, `${last}.${powerZone}`)).join() === name,
    ];
  }

  /** How long each took, in milliseconds from now. */
  async function apart(waits: readonly (() => Promise<boolean>)[]): Promise<number[]> {
    const begun = performance.now();
    return Promise.all(
      waits.map(async (holds) => {
        await waitUntil(holds, 'the record is served', 20_000);
        return Math.round(performance.now() - begun);
      }),
    );
  }

  for (const [what, silentMilliseconds] of [
    ['a moment', 600],
    ['a few seconds', 3_100],
    ['so long that it is told as away', 6_000],
  ] as const) {
    test(`for ${what} has the record within about a second of its return`, async () => {
      const begun = performance.now();
      let waits: readonly (() => Promise<boolean>)[];
      const end = silence();
      try {
        waits = await put(10 + sets);
        if (silentMilliseconds > 5_000) {
          const areAway = async () => {
            const pending = await levee.good('GET', '/rdns?state=pending', user);
            const away = pending.filter((each: { state_reason: string }) =>
              /is away since \S+: no (?:answer|connection)/.test(each.state_reason),
            );
            return away.length === 2;
          };
          await waitUntil(areAway, 'both are told as away', 5_000);
        }
        await delay(silentMilliseconds - (performance.now() - begun));
      } finally {
        end();
      }
      const late = await apart(waits);
      for (const milliseconds of late) assert.ok(milliseconds < 1_200, `${late} ms`);
    });
  }
});
