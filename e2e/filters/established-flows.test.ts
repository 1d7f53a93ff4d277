import assert from 'node:assert/strict';
import { test } from 'node:test';
import { filterKinds } from '@levee/core/filter/catalogue.ts';
import { type Entry, isFilter } from '@levee/core/filter/entry.ts';
import type { Filter } from '@levee/core/filter/filter.ts';
import type { FilterKind } from '@levee/core/filter/filter-kind.ts';
import type { Rule } from '@levee/core/firewall/rule.ts';
import { prefixFromTrusted } from '@levee/core/net/prefix-text.ts';
import { createCompiler, type Plan, tableName } from '@levee/core/nftables/compiler.ts';
import { filterSet } from '@levee/core/nftables/names.ts';
import { establishedKind } from '@levee/core/nftables/testing/test-kinds.ts';
import { forgetWindows } from '@levee/edge/drivers/conntrack/forget-windows.ts';
import { labObstacle, type Namespace } from '@levee/lab/namespace.ts';
import { FilteredPath, families, server, until } from './filtered-path.ts';
import { type FlowTally, flowClient, flowServer } from './flow-programs.ts';

const skip = labObstacle() ?? false;
const mark = '0123456789abcdef';
/** More than any window: what conntrack knew of a connection before it was away is of no use afterwards. */
const bulkOctets = 24 << 20;
const flows = families.flatMap((family) => [`tcp${family}`, `udp${family}`]);

let made = 0;
function base(dst: string): { uuid: string; sequence: number; priority: number; dst: Filter['dst'] } {
  made += 1;
  const uuid = `01900000-0000-7000-8000-${made.toString(16).padStart(12, '0')}`;
  return { uuid, sequence: made, priority: 1000, dst: prefixFromTrusted(dst) };
}

function filterOf(dst: string, kind: FilterKind, fields: Partial<Filter> = {}): Filter {
  const ports = kind.destinationPorts === 'required' ? { destinationPorts: { start: 4000, end: 4000 } } : {};
  return { ...base(dst), kind, ...ports, ...fields };
}

function ruleOf(dst: string, fields: Partial<Rule>): Rule {
  return { ...base(dst), protocol: 'any', action: 'drop', disabled: false, ...fields };
}

function looksAtFlows({ transports, destinationPorts, defaultPorts }: FilterKind): boolean {
  const sides = defaultPorts.filter(({ side }) => side === 'dst');
  const flowPorts = sides.some(({ transport, start }) => start === (transport === 'tcp' ? 443 : 53));
  return destinationPorts === 'optional' && transports.length > 0 && (sides.length === 0 || flowPorts);
}

/** Each is put in force and later taken out again, while others are: what lets the flows pass by its own meaning. */
function changing(): Entry[] {
  const entries: Entry[] = [
    ...filterKinds.filter(looksAtFlows),
    ...filterKinds.filter((kind) => !looksAtFlows(kind)),
  ].flatMap((kind) => kind.families.map((family) => filterOf(server[family], kind)));
  const [wide, elsewhere] = ['203.0.113.0/24', '203.0.113.99'];
  entries.push(
    ...[establishedKind, ...filterKinds.filter((kind) => kind.enforcement.tracking === 'flows')].map((kind) =>
      filterOf(wide, kind),
    ),
    ...filterKinds.map((kind) => filterOf(elsewhere, kind, { rateLimitMegabitsPerSecond: 1 })),
    ruleOf(server[4], { connectionState: 'new', action: 'continue' }),
    ruleOf(server[6], { protocol: 'udp', destinationPorts: { start: 9, end: 9 } }),
    ruleOf(wide, { protocol: 'tcp', sourcePorts: { start: 1, end: 9 }, priority: 1 }),
  );
  return entries;
}

function named(entry: Entry): string {
  return isFilter(entry) ? entry.kind.name : `a rule (${entry.protocol})`;
}

/** Packets of the flows that left one side and reached the other, both ways, by tables of the test's own. */
class PacketCount {
  readonly #ends: readonly Namespace[];

  constructor(client: Namespace, serving: Namespace) {
    this.#ends = [client, serving];
    for (const end of this.#ends) {
      end.loadNft(
        ['input', 'output']
          .map((hook) => {
            const lines = ['ip', 'ip6'].flatMap((family) =>
              ['tcp 443', 'udp 53'].map((each) => {
                const [transport, port] = each.split(' ');
                const side = (end === client) === (hook === 'output') ? 'dport' : 'sport';
                return `meta nfproto ${family === 'ip' ? 2 : 10} ${transport} ${side} ${port} counter`;
              }),
            );
            return `add table inet own\nadd chain inet own ${hook} { type filter hook ${hook} priority 0; }\n${lines
              .map((line) => `add rule inet own ${hook} ${line}\n`)
              .join('')}`;
          })
          .join(''),
      );
    }
  }

  /** Per flow: sent by the client, arrived, sent by the server, arrived. */
  read(): number[][] {
    const [fromClient, atClient] = this.#counts(0);
    const [fromServer, atServer] = this.#counts(1);
    return flows.map((_, index) => [fromClient, atServer, fromServer, atClient].map((each) => each?.[index] ?? -1));
  }

  #counts(end: number): [number[], number[]] {
    const read = (hook: string) =>
      [...(this.#ends[end]?.run('nft', ['list', 'chain', 'inet', 'own', hook]) ?? '').matchAll(/packets (\d+)/g)].map(
        (match) => Number(match[1]),
      );
    return [read('output'), read('input')];
  }
}

test('a TCP and a UDP flow of each family run through 50 changes of filters and rules without losing a packet', {
  skip,
}, async (t) => {
  await using path = new FilteredPath('flows');
  const compiler = createCompiler();
  // As the edge does it.
  const apply = async (plan: Plan): Promise<void> => {
    for (const prefix of plan.beginsTracking) await path.router.enter(() => ({ done: forgetWindows([prefix]) })).done;
    if (plan.text !== '') path.router.loadNft(plan.text);
    plan.commit();
  };
  /** What happens by itself after `settlingSeconds`. */
  const settle = (entry: Entry): void => {
    if (!isFilter(entry) || !entry.kind.enforcement.settles) return;
    path.router.loadNft(`flush set inet ${tableName} ${filterSet('settling', entry.uuid)}\n`);
  };

  // The connections are opened under the eyes of conntrack.
  const first = families.map((family) => filterOf(server[family], establishedKind));
  // Others keep conntrack at work: where nothing needs it the kernel lets go of what it knew.
  await apply(compiler.replace([...first, filterOf('203.0.113.98', establishedKind)], mark));
  const count = new PacketCount(path.client, path.server);
  const script = (text: string) => ['--input-type=module', '-e', text];
  const serving = path.start(path.server, process.execPath, script(flowServer(Object.values(server))));
  await until('the server', () => serving.output.includes('ready'));
  const client = path.start(path.client, process.execPath, script(flowClient(Object.values(server), bulkOctets)));
  await until('the connections', () => client.output.includes('ready'));
  const order = async (name: string): Promise<FlowTally> => {
    const from = client.output.length;
    client.child.stdin?.write(`${name}\n`);
    const line = await until(name, () => /^\{.*\}$/m.exec(client.output.slice(from))?.[0], 20);
    return JSON.parse(line);
  };
  /** All flows have gone both ways under the present table. */
  const exchanged = async (): Promise<void> => {
    const before = (await order('tally')).sent;
    const deadline = Date.now() + 5000;
    for (;;) {
      const { received } = await order('tally');
      if (flows.every((flow) => (received[flow] ?? 0) > (before[flow] ?? 0))) return;
      const silent = flows.filter((flow) => (received[flow] ?? 0) <= (before[flow] ?? 0));
      if (Date.now() > deadline) throw new Error(`${silent} stopped at change ${changes}, ${lastChange}`);
    }
  };
  const pool = changing();
  const present: Entry[] = [...first];
  let changes = 0;
  let lastChange = '';
  const change = async (upsert: Entry[], remove: Entry[]): Promise<void> => {
    lastChange = `with ${upsert.map(named)}, without ${remove.map(named)}`;
    await apply(compiler.change({ upsert, remove: remove.map(({ uuid }) => uuid) }, mark));
    changes += upsert.length + remove.length;
    await exchanged();
    for (const entry of upsert) settle(entry);
    if (upsert.length > 0) await exchanged();
  };
  await exchanged();
  for (const entry of first) settle(entry);
  // Away from conntrack, then back: what it still knows of the connection is old.
  await change([], first);
  await order('bulk');
  await change(first, []);
  for (let turn = 0; changes < 54; turn += 1) {
    const next = pool[turn % pool.length] as Entry;
    present.push(next);
    await change([next], []);
    if (present.length > 6) await change([], present.splice((turn * 5) % present.length, 1));
  }
  const { sent, received } = await order('stop');
  assert.deepEqual(received, sent);
  const packets = await until('packets under way', () => {
    const read = count.read();
    return read.every(([out, arrived, back, returned]) => out === arrived && back === returned) ? read : false;
  }).catch(() => count.read());
  for (const [index, [out, arrived, back, returned]] of packets.entries()) {
    assert.equal(arrived, out, `${flows[index]} to the server`);
    assert.equal(returned, back, `${flows[index]} to the client`);
    assert.ok((out ?? 0) > 100, `${flows[index]} sent ${out} packets`);
  }
  t.diagnostic(`${changes} changes; packets sent, arrived, answered, arrived: ${JSON.stringify(packets)}`);
});
