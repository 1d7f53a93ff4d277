/**
 * Guarantees to who reads states while a router's edge starts anew: the kernel keeps what is in force, so it is told as in
 * force all the time, since when and how fast included; what failed is told as failed.
 */
import assert from 'node:assert/strict';
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { labObstacle } from '@levee/lab/namespace.ts';
import { RouterPath } from '@levee/lab/router-path.ts';
import { RunningLevee, until } from './running-levee.ts';

const prefix = '203.0.113.0/24';
const restarts = 3;
const wait = { prefer: 'wait=20' };

// biome-ignore lint/suspicious/noExplicitAny: a test says what it expects of it
type Told = any;

/** What must not change: the state, and of each router since when and how fast. */
function standing(object: Told): string {
  const { state, state_reason, applied } = object;
  return JSON.stringify([state, state_reason, applied.map(({ at, latency_ms }: Told) => [at, latency_ms])]);
}

/** Everything that was told of an object, in order, as long as it is watched. */
class Watch {
  readonly #told: string[] = [];
  #over = false;
  readonly #watching: Promise<void>;

  constructor(read: () => Promise<Told>) {
    this.#watching = this.#watch(read);
    // Of a test that failed elsewhere, whose Levee is gone.
    this.#watching.catch(() => undefined);
  }

  async #watch(read: () => Promise<Told>): Promise<void> {
    while (!this.#over) {
      const now = standing(await read());
      if (this.#told.at(-1) !== now) this.#told.push(now);
      await delay(3);
    }
  }

  async end(): Promise<readonly string[]> {
    this.#over = true;
    await this.#watching;
    return this.#told;
  }
}

test('a restart of the edge takes back nothing: states, since when and how fast stay as they were', {
  skip: labObstacle() ?? false,
}, async () => {
  using path = new RouterPath({ protectedPrefixes: [prefix], label: 'restart' });
  const levee = await RunningLevee.start({
    environment: { LEVEE_EDGE_NETNS: path.router.name, LEVEE_RATE_LIMIT: 'off' },
  });
  try {
    const operator = levee.operatorKey;
    const { key } = await levee.createProvider('Example Hosting', [prefix]);
    const [router] = await levee.good('GET', '/operator/router', operator);
    await levee.good('PATCH', `/operator/router/${router.uuid}`, operator, { tunnel_addresses: ['192.0.2.1'] });
    const create = (route: string, body: object) => levee.good('POST', route, key, body, wait);
    const ruleOf = (host: number) =>
      create('/firewall/rule', { dst: `203.0.113.${host}`, protocol: 'udp', action: 'drop' });
    const made = {
      rule: [`/firewall/rule/${(await ruleOf(10)).uuid}`],
      filter: [`/filter/${(await create('/filter', { dst: '203.0.113.20', filter: 22 })).uuid}`],
      // In force, or failed: as this kernel can.
      tunnel: [
        `/tunnel/${(await create('/tunnel', { ips: ['203.0.113.128/28'], endpoint: '198.51.100.9', type: 'GRE' })).uuid}`,
      ],
    };
    const read = async (route: string) => (await levee.good('GET', route, key))[0];
    const before = new Map<string, string>();
    for (const [name, [route = '']] of Object.entries(made)) {
      const object = await read(route);
      before.set(name, standing(object));
      if (name === 'tunnel') continue;
      assert.equal(object.state, 'active');
      assert.ok(object.applied[0].at && object.applied[0].latency_ms !== undefined, before.get(name));
    }

    const watches = new Map(Object.entries(made).map(([name, [route = '']]) => [name, new Watch(() => read(route))]));
    for (let round = 0; round < restarts; round++) {
      const former = levee.processes.edge as number;
      process.kill(former, 'SIGKILL');
      await until('another edge', 20_000, () => ![undefined, former].includes(levee.processes.edge));
      assert.equal((await ruleOf(30 + round)).state, 'active', 'the new one acknowledges');
    }
    for (const [name, watch] of watches) assert.deepEqual(await watch.end(), [before.get(name)], name);

    // As on a new disk: the key alone is left.
    const state = join(levee.dataDirectory, 'edge');
    const kept = readdirSync(state).filter((name) => name.includes('key'));
    const former = levee.processes.edge as number;
    for (const name of readdirSync(state)) if (!kept.includes(name)) rmSync(join(state, name), { recursive: true });
    process.kill(former, 'SIGKILL');
    await until('another edge', 20_000, () => ![undefined, former].includes(levee.processes.edge));
    assert.equal((await ruleOf(40)).state, 'active');
    for (const [name, [route = '']] of Object.entries(made)) {
      await until(
        `the ${name} to stand as before`,
        20_000,
        async () => standing(await read(route)) === before.get(name),
      );
    }
  } finally {
    await levee.stop();
  }
});
