import assert from 'node:assert/strict';
import { test } from 'node:test';
import { filterKind, filterKinds } from '@levee/core/filter/catalogue.ts';
import type { Entry } from '@levee/core/filter/entry.ts';
import { createCompiler, type Plan } from '@levee/core/nftables/compiler.ts';
import { markChainName, tableName } from '@levee/core/nftables/names.ts';
import fc from 'fast-check';
import { createFakeNft } from '../drivers/nft/fake.ts';
import { filterOf } from '../testing/filters.ts';
import { ruleOf } from '../testing/rules.ts';
import { understand } from './desired.ts';
import { createMarks, parseMarkListing } from './mark.ts';

const mark = '0123456789abcdef';

function entryOf(wire: Parameters<typeof understand>[0]): Entry {
  const understood = understand(wire);
  assert.ok(understood.ok);
  return understood.entry;
}

const anyRule = fc
  .record({
    n: fc.integer({ min: 1, max: 25 }),
    dst: fc.constantFrom('10.0.0.0/8', '10.1.0.0/16', '10.1.2.0/24', '10.1.2.3', '10.1.2.4', '10.1.3.1', '10.2.0.1'),
    action: fc.constantFrom('drop', 'accept', 'continue', 'reject'),
    protocol: fc.constantFrom('udp', 'tcp', 'any'),
    priority: fc.integer({ min: 1, max: 3 }),
    port: fc.option(fc.integer({ min: 1, max: 3 }), { nil: undefined }),
    disabled: fc.boolean(),
    ratelimit: fc.option(fc.constant(100), { nil: undefined }),
    statetype: fc.option(fc.constant('established' as const), { nil: undefined }),
  })
  .map(({ n, port, ratelimit, statetype, ...fields }): Entry => {
    const { port: _, ...wire } = ruleOf(n);
    return entryOf({
      ...wire,
      ...fields,
      ...(port === undefined ? {} : { port: { dst: { start: port } } }),
      ...(ratelimit === undefined ? {} : { ratelimit }),
      ...(statetype === undefined ? {} : { statetype }),
    } as Parameters<typeof understand>[0]);
  });

/** Kinds of each sort: with a memory, with ports of their own, with what conntrack must see. */
const anyFilter = fc
  .record({
    n: fc.integer({ min: 30, max: 45 }),
    dst: fc.constantFrom('10.0.0.0/8', '10.1.2.0/24', '10.1.2.3', '10.1.2.4', '10.1.3.1'),
    filter: fc.constantFrom(...filterKinds.map(({ id }) => id)),
    priority: fc.integer({ min: 1, max: 3 }),
    ratelimit: fc.option(fc.constant(100), { nil: undefined }),
  })
  .map(({ n, ratelimit, ...fields }): Entry => {
    const { destinationPorts } = filterKind(fields.filter) ?? {};
    const port = destinationPorts === 'required' ? { port: { dst: { start: 4000 } } } : {};
    const wire = filterOf(n, { ...fields, ...port, ...(ratelimit === undefined ? {} : { ratelimit }) });
    // A kind may not be had for so wide a subnet.
    return understand(wire).ok ? entryOf(wire) : entryOf({ ...wire, dst: '10.1.2.3' });
  });

const anyEntry = fc.oneof({ weight: 3, arbitrary: anyRule }, { weight: 1, arbitrary: anyFilter });

/** Adoption compiles the stored entries at once and takes the result for what a history of changes has made. */
test('the table after any history of changes is the one that a full load of the same rules and filters makes', async () => {
  const history = fc.array(
    fc.record({ upsert: fc.array(anyEntry, { maxLength: 8 }), removeEvery: fc.integer({ min: 2, max: 6 }) }),
    {
      maxLength: 10,
    },
  );
  await fc.assert(
    fc.asyncProperty(history, async (steps) => {
      const grown = createFakeNft();
      const { driver } = grown.open();
      const compiler = createCompiler();
      const send = async (plan: Plan): Promise<void> => {
        if (plan.text !== '') assert.deepEqual(await driver.apply(plan.text), { ok: true, output: '' });
        plan.commit();
      };
      await send(compiler.replace([], mark));
      const entries = new Map<string, Entry>();
      for (const { upsert, removeEvery } of steps) {
        const changed = new Map(upsert.map((entry) => [entry.uuid, entry]));
        const remove = [...entries.keys()].filter((uuid, index) => index % removeEvery === 0 && !changed.has(uuid));
        await send(compiler.change({ upsert: [...changed.values()], remove }, mark));
        for (const uuid of remove) entries.delete(uuid);
        for (const [uuid, entry] of changed) entries.set(uuid, entry);
      }
      const loaded = createFakeNft();
      await loaded.open().driver.apply(createCompiler().replace(entries.values(), mark).text);
      assert.equal(grown.dump(tableName, markChainName), loaded.dump(tableName, markChainName));
    }),
    { numRuns: 400 },
  );
});

test("the mark is read from nft's listing as it was written", async () => {
  const { driver } = createFakeNft().open();
  await driver.apply(createCompiler().replace([], mark).text);
  const listed = await driver.list(`chain inet ${tableName} ${markChainName}`);
  assert.equal(listed.ok && parseMarkListing(listed.output), mark);
});

test('marks of other settings do not fit, and no two are the same', () => {
  const marks = createMarks({ ingressDevices: ['eth0'] });
  const seen = new Set(Array.from({ length: 1000 }, () => marks.next()));
  assert.equal(seen.size, 1000);
  for (const each of seen) assert.match(each, /^[0-9a-f]{16}$/);
  assert.ok(marks.fits(marks.next()));
  assert.ok(!marks.fits(createMarks({ ingressDevices: [] }).next()));
});
