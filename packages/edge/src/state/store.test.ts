import assert from 'node:assert/strict';
import { cpSync, readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { AgentTunnel } from '@levee/contract/agent.ts';
import { ownDirectory } from '../testing/directory.ts';
import { filterOf } from '../testing/filters.ts';
import { ruleOf, uuidOf } from '../testing/rules.ts';
import { tunnelOf } from '../testing/tunnels.ts';
import { until } from '../testing/until.ts';
import { applyEntry, type ChangeEntry, type DesiredState } from './desired-state.ts';
import type { AgentEntry } from './objects.ts';
import { renderRecord } from './record.ts';
import { openStateStore, type StateStore } from './store.ts';

const byUuid = <T extends { uuid: string }>(objects: readonly T[]): Map<string, T> =>
  new Map(objects.map((object) => [object.uuid, object]));
const stateOf = (
  cursor: string,
  entries: AgentEntry[],
  refused: Record<string, string> = {},
  tunnels: AgentTunnel[] = [],
): DesiredState => ({
  cursor,
  complete: true,
  mark: 'aaaa000000000000',
  refused,
  entries: byUuid(entries),
  tunnels: byUuid(tunnels),
});
const changeOf = (n: number, fields: Partial<ChangeEntry> = {}): ChangeEntry => ({
  cursor: `1.${n}`,
  mark: n.toString(16).padStart(16, '0'),
  upsert: [ruleOf(n)],
  remove: [],
  ...fields,
});

/** What a restart finds, folded into one state. */
function restored(directory: string): DesiredState | undefined {
  const loaded = openStateStore(directory).load();
  if (loaded === undefined) return undefined;
  let state: DesiredState = loaded.base;
  for (const entry of loaded.entries) state = applyEntry(state, entry, loaded.base);
  return state;
}

async function filled(directory: string): Promise<StateStore> {
  const store = openStateStore(directory);
  assert.equal(store.load(), undefined);
  await store.replace(stateOf('1.0', [ruleOf(1000), ruleOf(1001)], { [uuidOf(1000)]: 'no' }));
  return store;
}

test('a restart finds the snapshot and everything appended since', async (t) => {
  const directory = ownDirectory(t);
  const store = await filled(directory);
  await store.append(changeOf(1));
  await store.append(changeOf(2, { upsert: [ruleOf(1, { action: 'accept' })], remove: [uuidOf(1001)] }));
  await store.append({ mark: 'bbbb000000000000', refused: { [uuidOf(1)]: 'never' } });
  const state = restored(directory);
  assert.deepEqual(state, {
    cursor: '1.2',
    complete: true,
    mark: 'bbbb000000000000',
    refused: { [uuidOf(1)]: 'never' },
    entries: byUuid([ruleOf(1000), ruleOf(1, { action: 'accept' })]),
    tunnels: new Map(),
  });
  await store.close();
});

test('filters and tunnels are found again as rules are, from the snapshot and from the journal', async (t) => {
  const directory = ownDirectory(t);
  const store = openStateStore(directory);
  const filters = Array.from({ length: 600 }, (_, n) => filterOf(n));
  const tunnels = Array.from({ length: 600 }, (_, n) => tunnelOf(5000 + n));
  await store.replace(stateOf('1.0', [...filters, ruleOf(2000)], {}, tunnels));
  await store.append(
    changeOf(1, {
      upsert: [filterOf(1, { ratelimit: 3 })],
      tunnels: [tunnelOf(5001, { number: 77 })],
      remove: [uuidOf(2), uuidOf(5002)],
    }),
  );
  await store.close();
  const state = restored(directory);
  assert.equal(state?.entries.size, 600);
  assert.deepEqual(state?.entries.get(uuidOf(1)), filterOf(1, { ratelimit: 3 }));
  assert.equal(state?.tunnels.size, 599);
  assert.deepEqual(state?.tunnels.get(uuidOf(5001)), tunnelOf(5001, { number: 77 }));
  assert.equal(state?.complete, true);
});

test('a state from which on only rules were told stays so over a restart', async (t) => {
  const directory = ownDirectory(t);
  const store = await filled(directory);
  await store.append(changeOf(1, { complete: false }));
  await store.append(changeOf(2));
  assert.equal(restored(directory)?.complete, false);
  await store.replace({ ...stateOf('2.0', [ruleOf(1)]), complete: false });
  await store.close();
  assert.equal(restored(directory)?.complete, false);
});

/** Byte for byte what the release before filters and tunnels wrote. */
function writeRulesAlone(directory: string): void {
  const head = { version: 1, cursor: '1.4', mark: 'aaaa000000000000', refused: { [uuidOf(2)]: 'no' }, count: 2 };
  writeFileSync(
    join(directory, 'desired.3.snapshot'),
    renderRecord(head) + renderRecord([ruleOf(1)]) + renderRecord([ruleOf(2)]),
  );
  const change = { cursor: '1.5', mark: 'aaaa000000000001', upsert: [ruleOf(3)], remove: [uuidOf(1)] };
  writeFileSync(join(directory, 'desired.3.journal'), renderRecord(change));
}

test('a state of the release before filters is read, as one of rules alone, and written anew with the next snapshot', async (t) => {
  const directory = ownDirectory(t);
  writeRulesAlone(directory);
  assert.deepEqual(restored(directory), {
    cursor: '1.5',
    complete: false,
    mark: 'aaaa000000000001',
    refused: { [uuidOf(2)]: 'no' },
    entries: byUuid([ruleOf(2), ruleOf(3)]),
    tunnels: new Map(),
  });
  const store = openStateStore(directory);
  store.load();
  await store.replace(stateOf('1.6', [filterOf(4)]));
  await store.close();
  assert.deepEqual(restored(directory), stateOf('1.6', [filterOf(4)]));
});

test('a state that a newer release wrote is refused in words, and left as it is', async (t) => {
  const directory = ownDirectory(t);
  const store = await filled(directory);
  await store.close();
  const newer = join(directory, 'desired.2.snapshot');
  writeFileSync(newer, renderRecord({ version: 3, cursor: '9.9', whatever: true }));
  const files = (): string[] => readdirSync(directory).map((name) => `${name} ${readFileSync(join(directory, name))}`);
  const before = files();
  assert.throws(
    () => openStateStore(directory).load(),
    (error: Error) => error.message.includes(newer) && /newer release \(format 3, .* up to 2\)/.test(error.message),
  );
  assert.deepEqual(files(), before);
});

test('a change lifts the refusal of the rules that it names, and of no others', async (t) => {
  const directory = ownDirectory(t);
  const store = await filled(directory);
  await store.append(changeOf(1));
  assert.deepEqual(restored(directory)?.refused, { [uuidOf(1000)]: 'no' });
  await store.append(changeOf(2, { upsert: [ruleOf(1000)] }));
  assert.deepEqual(restored(directory)?.refused, {});
  await store.close();
});

test('a journal that was cut at any byte gives the entries before the cut, and goes on from there', async (t) => {
  const directory = ownDirectory(t);
  const store = await filled(directory);
  const ends = [0];
  for (let n = 1; n <= 4; n++) {
    await store.append(changeOf(n));
    ends.push(readFileSync(join(directory, 'desired.1.journal')).length);
  }
  await store.close();
  for (let cut = 0; cut <= (ends.at(-1) as number); cut += 7) {
    const copy = ownDirectory(t);
    cpSync(directory, copy, { recursive: true });
    truncateSync(join(copy, 'desired.1.journal'), cut);
    const whole = ends.findLastIndex((end) => end <= cut);
    assert.equal(restored(copy)?.cursor, `1.${whole}`, `cut at ${cut}`);
    const again = openStateStore(copy);
    again.load();
    await again.append(changeOf(9));
    await again.close();
    const state = restored(copy);
    assert.equal(state?.cursor, '1.9');
    assert.equal(state?.entries.size, 2 + whole + 1);
  }
});

test('a damaged byte ends the journal there, however much follows', async (t) => {
  const directory = ownDirectory(t);
  const store = await filled(directory);
  for (let n = 1; n <= 4; n++) await store.append(changeOf(n));
  await store.close();
  const path = join(directory, 'desired.1.journal');
  const bytes = readFileSync(path);
  const middle = bytes.indexOf('"1.3"') + 2;
  bytes[middle] = (bytes[middle] as number) ^ 1;
  writeFileSync(path, bytes);
  assert.equal(restored(directory)?.cursor, '1.2');
});

test('a damaged snapshot is no state at all', async (t) => {
  const directory = ownDirectory(t);
  const store = await filled(directory);
  await store.close();
  const path = join(directory, 'desired.1.snapshot');
  truncateSync(path, readFileSync(path).length - 3);
  assert.equal(restored(directory), undefined);
});

test('folding goes on beside changes, loses none, and leaves one snapshot and one journal', async (t) => {
  const directory = ownDirectory(t);
  const store = openStateStore(directory, 2_000);
  const objects = { entries: new Map<string, AgentEntry>(), tunnels: new Map<string, AgentTunnel>() };
  let state: DesiredState = { ...stateOf('1.0', []), ...objects };
  await store.replace(state);
  for (let n = 1; n <= 400; n++) {
    const upsert = n % 5 === 0 ? [filterOf(n)] : [ruleOf(n)];
    const tunnels = n % 7 === 0 ? { tunnels: [tunnelOf(1000 + (n % 9))] } : {};
    const entry = changeOf(n, {
      upsert,
      ...tunnels,
      remove: n % 3 === 0 ? [uuidOf(n - 1), uuidOf(1000 + (n % 5))] : [],
    });
    void store.append(entry);
    state = applyEntry(state, entry, objects);
    store.compact(state);
    if (n % 20 === 0) {
      assert.deepEqual(restored(directory), state, `after ${n}`);
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
  await store.close();
  assert.deepEqual(restored(directory), state);
  const names = readdirSync(directory).filter((name) => !name.endsWith('.tmp'));
  assert.equal(names.length, 2, names.join());
  assert.ok(!names.includes('desired.1.snapshot'), 'it was folded at least once');
});

test('a new whole state takes the place of snapshot and journal', async (t) => {
  const directory = ownDirectory(t);
  const store = await filled(directory);
  await store.append(changeOf(1));
  const next = stateOf('2.0', [ruleOf(7)]);
  await store.replace(next);
  await store.append(changeOf(8, { cursor: '2.8' }));
  await store.close();
  assert.deepEqual([...(restored(directory)?.entries.keys() ?? [])], [uuidOf(7), uuidOf(8)]);
});

test('a state of which the snapshot never got its name is the one before', async (t) => {
  const directory = ownDirectory(t);
  const store = await filled(directory);
  await store.append(changeOf(1));
  await store.close();
  writeFileSync(join(directory, 'desired.2.snapshot.tmp'), readFileSync(join(directory, 'desired.1.snapshot')));
  assert.equal(restored(directory)?.cursor, '1.1');
});

test('what was appended together is on the disk together', async (t) => {
  const store = await filled(ownDirectory(t));
  let settled = 0;
  for (let n = 1; n <= 50; n++) void store.append(changeOf(n)).then(() => settled++);
  await until('all are on the disk', () => settled === 50);
  await store.close();
});
