import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AgentRule } from '@levee/contract/agent.ts';
import { type Compiler, createCompiler, type Plan } from '@levee/core/nftables/compiler.ts';
import { createFakeNft } from '../drivers/nft/fake.ts';
import { ruleOf, uuidOf } from '../testing/rules.ts';
import { type Counters, createCounters } from './counters.ts';
import { understand } from './desired.ts';

const mark = '0123456789abcdef';

async function setUp(wires: readonly AgentRule[]) {
  const world = createFakeNft();
  const { driver, kernel } = world.open();
  const reads: string[] = [];
  const watched = {
    ...kernel,
    chainCounters(chain: string) {
      reads.push(chain);
      return kernel.chainCounters(chain);
    },
    allChainCounters(pace: 'quick' | 'gentle') {
      reads.push('all');
      return kernel.allChainCounters(pace);
    },
  };
  const compiler: Compiler = createCompiler();
  const counters: Counters = createCounters(watched);
  const send = async (plan: Plan, chains: readonly string[] | 'all' = plan.flushedChains): Promise<void> => {
    await counters.beforeFlush(chains, compiler);
    assert.deepEqual(await driver.apply(plan.text), { ok: true, output: '' });
    counters.afterFlush(chains);
    plan.commit();
    reads.length = 0;
  };
  const understood = (wire: AgentRule) => {
    const result = understand(wire);
    assert.ok(result.ok);
    return result.entry;
  };
  await send(compiler.replace(wires.map(understood), mark), 'all');
  return {
    hit: (chain: string, index: number, packets: number) => world.hit('levee', chain, index, packets),
    change: (upsert: readonly AgentRule[], remove: readonly string[] = []) =>
      send(compiler.change({ upsert: upsert.map(understood), remove }, mark)),
    /** What a periodic reading finds, and what it looked at. */
    async read() {
      await counters.read(() => compiler);
      const found = Object.fromEntries(counters.take().map(({ uuid, packets }) => [uuid, packets]));
      return { found, reads: reads.splice(0) };
    },
  };
}

/** Of different ports, so that none share a chain. */
const different = (count: number): AgentRule[] =>
  Array.from({ length: count }, (_, n) => ruleOf(n, { port: { dst: { start: 1000 + n } } }));
const chainOf = (n: number): string => `c4_0a0000${n.toString(16).padStart(2, '0')}_32`;

test('only chains that packets were sent to since the last reading are read', async () => {
  const { hit, read } = await setUp(different(100));
  assert.deepEqual(await read(), { found: {}, reads: [] });
  hit(chainOf(3), 0, 5);
  hit(chainOf(9), 0, 2);
  assert.deepEqual(await read(), { found: { [uuidOf(3)]: 5, [uuidOf(9)]: 2 }, reads: [chainOf(3), chainOf(9)] });
  assert.deepEqual(await read(), { found: {}, reads: [] });
  hit(chainOf(9), 0, 1);
  assert.deepEqual(await read(), { found: { [uuidOf(9)]: 1 }, reads: [chainOf(9)] });
});

test('chains that those jump to are read with them', async () => {
  const wide = Array.from({ length: 40 }, (_, n) =>
    ruleOf(200 + n, { dst: '10.0.0.0/24', action: 'continue', port: { dst: { start: 2000 + n } } }),
  );
  const { port: _, ...either } = ruleOf(300, { dst: '2001:db8::1', protocol: 'ipv6-frag' });
  const { hit, read, change } = await setUp([...different(150), ...wide]);
  // Of the narrow prefix: its own rule, then the wide one's rules in runs.
  await change([ruleOf(7, { priority: 1 }), either]);
  await read();
  const run = 'cr4_0a000000_24_1_first';
  hit(run, 2, 4);
  const { found, reads } = await read();
  assert.deepEqual(found, { [uuidOf(202)]: 4 });
  assert.ok(reads.includes(run) && !reads.includes('all'), reads.join(' '));
  const verdict = `verdict_${uuidOf(300).replaceAll('-', '')}`;
  hit(verdict, 0, 3);
  assert.deepEqual((await read()).found, { [uuidOf(300)]: 3 });
});

test('where most chains had traffic, one dump of everything replaces the many', async () => {
  const { hit, read } = await setUp(different(100));
  for (let n = 0; n < 50; n++) hit(chainOf(n), 0, 1);
  const { found, reads } = await read();
  assert.equal(Object.keys(found).length, 50);
  assert.deepEqual(reads, ['all']);
});

test('packets around a change of their chain are counted once, however their element fared', async () => {
  const { hit, read, change } = await setUp(different(100));
  hit(chainOf(3), 0, 5);
  assert.deepEqual((await read()).found, { [uuidOf(3)]: 5 });
  hit(chainOf(3), 0, 2);
  await change([ruleOf(3, { port: { dst: { start: 9 } } })]);
  hit(chainOf(3), 0, 3);
  assert.deepEqual((await read()).found, { [uuidOf(3)]: 5 });
  // Taken out and put back: the element counts from nothing up to where it stood.
  await change([], [uuidOf(3)]);
  await change(different(4).slice(3));
  hit(chainOf(3), 0, 10);
  assert.deepEqual((await read()).found, { [uuidOf(3)]: 10 });
  assert.deepEqual((await read()).found, {});
});
