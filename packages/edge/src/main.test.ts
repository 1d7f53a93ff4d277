import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { filterKinds } from '@levee/core/filter/catalogue.ts';
import { pino } from 'pino';
import { openNetlink } from './drivers/nft/netlink.ts';
import { type EdgeConfig, type EdgeHandle, startEdge } from './main.ts';
import { type AgentEntry, isAgentFilter } from './state/objects.ts';
import { renderRecord } from './state/record.ts';
import { tableRecordFile } from './state/table-record.ts';
import { startControlPlane, type TestControlPlane } from './testing/control-plane.ts';
import { ownDirectory } from './testing/directory.ts';
import { dnsKind, filterOf } from './testing/filters.ts';
import { enterOwnNamespace, nft } from './testing/own-namespace.ts';
import { ruleOf, uuidOf } from './testing/rules.ts';
import { freshTable, kernelTable } from './testing/table.ts';
import { until } from './testing/until.ts';

const skip = enterOwnNamespace() ?? false;

interface Setting {
  readonly controlPlane: TestControlPlane;
  readonly config: EdgeConfig;
  start(changes?: Partial<EdgeConfig>): Promise<EdgeHandle>;
}

async function setUp(t: TestContext): Promise<Setting> {
  const directory = ownDirectory(t);
  const controlPlane = await startControlPlane({ socketPath: join(directory, 'control.sock') });
  if (!skip) nft('flush ruleset\n');
  const config: EdgeConfig = {
    controlPlanes: [controlPlane.address],
    key: controlPlane.key,
    stateDirectory: join(directory, 'state'),
    driver: 'kernel',
    intervals: { reportMilliseconds: 100, driftMilliseconds: 50, reconnectMilliseconds: 50 },
    logger: pino({ level: 'silent' }),
  };
  const edges: EdgeHandle[] = [];
  t.after(async () => {
    for (const edge of edges) await edge.stop();
    await controlPlane.close();
  });
  return {
    controlPlane,
    config,
    async start(changes = {}) {
      const edge = await startEdge({ ...config, ...changes });
      edges.push(edge);
      return edge;
    },
  };
}

const acknowledged = (controlPlane: TestControlPlane): Promise<void> =>
  until(`change ${controlPlane.position} is acknowledged`, () => controlPlane.acknowledged === controlPlane.position);

const generation = (): number => {
  const kernel = openNetlink('levee');
  try {
    return kernel.generation();
  } finally {
    kernel.close();
  }
};

describe('an edge on the real kernel', { skip }, () => {
  test('what is acknowledged is in the kernel, change after change', async (t) => {
    const { controlPlane, start } = await setUp(t);
    controlPlane.upsert(ruleOf(1), ruleOf(2, { dst: '2001:db8::/64', protocol: 'tcp' }));
    await start();
    await acknowledged(controlPlane);
    assert.equal(kernelTable(), freshTable(controlPlane.entries.values()));
    controlPlane.upsert(ruleOf(1, { action: 'accept' }), ruleOf(3, { dst: '10.0.0.0/24' }));
    controlPlane.remove(uuidOf(2));
    await acknowledged(controlPlane);
    assert.equal(kernelTable(), freshTable(controlPlane.entries.values()));
  });

  test('stopping leaves the kernel as it is; the next start takes it over without a transaction', async (t) => {
    const { controlPlane, start } = await setUp(t);
    controlPlane.upsert(...Array.from({ length: 50 }, (_, n) => ruleOf(n)));
    const first = await start();
    await acknowledged(controlPlane);
    controlPlane.upsert(ruleOf(7, { action: 'accept' }));
    controlPlane.remove(uuidOf(8));
    await acknowledged(controlPlane);
    await first.stop();
    const before = { generation: generation(), table: kernelTable() };
    const second = await start();
    await until('connected', () => second.connected);
    assert.deepEqual({ generation: generation(), table: kernelTable() }, before);
    assert.equal(second.statistics.adoptions, 1);
    controlPlane.upsert(ruleOf(9, { dst: '10.0.0.0/16' }), ruleOf(60));
    await acknowledged(controlPlane);
    assert.equal(generation(), before.generation + 1);
    assert.equal(second.statistics.fullLoads, 0);
    assert.equal(kernelTable(), freshTable(controlPlane.entries.values()));
  });

  test('a reboot without a control plane brings everything back from the own files', async (t) => {
    const { controlPlane, start } = await setUp(t);
    controlPlane.upsert(...Array.from({ length: 20 }, (_, n) => ruleOf(n)));
    const first = await start();
    await acknowledged(controlPlane);
    await first.stop();
    await controlPlane.cut();
    nft('flush ruleset\n');
    await start();
    assert.equal(kernelTable(), freshTable(controlPlane.entries.values()));
  });

  test('a table of other settings is not taken over', async (t) => {
    const { controlPlane, start } = await setUp(t);
    controlPlane.upsert(ruleOf(1));
    const first = await start();
    await acknowledged(controlPlane);
    await first.stop();
    const second = await start({ ingressDevices: ['lo'] });
    assert.equal(second.statistics.adoptions, 0);
    assert.equal(second.statistics.fullLoads, 1);
  });

  test('without any state the table in the kernel stays until the control plane has spoken', async (t) => {
    const { controlPlane, config, start } = await setUp(t);
    controlPlane.upsert(ruleOf(1));
    const first = await start();
    await acknowledged(controlPlane);
    await first.stop();
    await controlPlane.cut();
    const before = { generation: generation(), table: kernelTable() };
    await start({ stateDirectory: `${config.stateDirectory}-new` });
    assert.deepEqual({ generation: generation(), table: kernelTable() }, before);
    controlPlane.upsert(ruleOf(2));
    await controlPlane.restore();
    await acknowledged(controlPlane);
    assert.equal(kernelTable(), freshTable(controlPlane.entries.values()));
  });

  test('a table that another program took away or changed is put up again and the drift reported', async (t) => {
    const { controlPlane, start } = await setUp(t);
    controlPlane.upsert(...Array.from({ length: 20 }, (_, n) => ruleOf(n)));
    const edge = await start();
    await acknowledged(controlPlane);
    const wanted = kernelTable();
    const reported = (drift: number): Promise<void> =>
      until(`drift ${drift} is reported`, () => controlPlane.reports.some(({ status }) => status?.drift === drift));
    nft('flush ruleset\n');
    await until('it is back', () => kernelTable() === wanted);
    // Not before the first load has ended: what happens during one is repaired too, without being counted.
    await reported(1);
    await until('the load has ended', () => edge.statistics.commits === 2);
    nft('flush chain inet levee hook_forward\n');
    await until('it is back again', () => kernelTable() === wanted);
    await reported(2);
  });

  test('what other programs do to their own tables is left alone and costs no load', async (t) => {
    const { controlPlane, start } = await setUp(t);
    controlPlane.upsert(ruleOf(1));
    const edge = await start();
    await acknowledged(controlPlane);
    nft('table inet other {\nchain input { type filter hook input priority 0; }\n}\n');
    const seen = controlPlane.reports.filter((report) => report.status).length;
    await until('some looks later', () => controlPlane.reports.filter((report) => report.status).length > seen + 3);
    assert.equal(edge.statistics.fullLoads, 1);
    assert.match(nft('list tables\n'), /table inet other/);
  });

  test('a rule that the kernel refuses is reported with its words; its neighbours are in force', async (t) => {
    const { controlPlane, start } = await setUp(t);
    controlPlane.upsert(ruleOf(1));
    const edge = await start({ intervals: { driftMilliseconds: 600_000, reportMilliseconds: 100 } });
    await acknowledged(controlPlane);
    // A hook's chain cannot be gone to: the kernel refuses the element that names it.
    nft('add chain inet levee c4_0a000007_32 { type filter hook input priority 0; }\n');
    const rules = Array.from({ length: 16 }, (_, n) => ruleOf(n, { port: { dst: { start: 1000 + n } } }));
    controlPlane.upsert(...rules);
    await acknowledged(controlPlane);
    assert.deepEqual(controlPlane.reports.at(-1)?.failures, [
      { uuid: uuidOf(7), reason: 'the kernel refuses it: Operation not supported' },
    ]);
    const table = kernelTable();
    for (let n = 0; n < 16; n++) assert.equal(new RegExp(`[ =]${1000 + n} counter`).test(table), n !== 7, `rule ${n}`);
    assert.equal(edge.statistics.fullLoads, 1);
    nft('delete chain inet levee c4_0a000007_32\n');
    controlPlane.upsert(ruleOf(7, { port: { dst: { start: 2007 } } }));
    await acknowledged(controlPlane);
    assert.deepEqual(controlPlane.reports.at(-1)?.failures, []);
  });

  test('a rule about broadcast frames fails without ingress devices, with the setting named; with them it is in force', async (t) => {
    const { controlPlane, start } = await setUp(t);
    controlPlane.upsert(ruleOf(1), ruleOf(2, { packettype: 'broadcast' }));
    const first = await start();
    await acknowledged(controlPlane);
    const failures = controlPlane.reports.at(-1)?.failures ?? [];
    assert.deepEqual(
      failures.map(({ uuid }) => uuid),
      [uuidOf(2)],
    );
    assert.match(failures[0]?.reason ?? '', /LEVEE_EDGE_INGRESS_DEVICES/);
    assert.equal(kernelTable(), freshTable([ruleOf(1)]));
    await first.stop();
    await start({ ingressDevices: ['lo'] });
    await until('the failure is gone', () => controlPlane.reports.at(-1)?.failures.length === 0);
    assert.match(kernelTable(), /chain i4_0a000002_32: .*pkttype broadcast/);
  });

  test('a second edge on the same state is refused, and says who holds it', async (t) => {
    const { config, start } = await setUp(t);
    await start();
    await assert.rejects(startEdge(config), new RegExp(`in use by another edge \\(process ${process.pid}\\)`));
  });

  test('a router that does not forward is told so at the start and in the status', async (t) => {
    const { controlPlane, config, start } = await setUp(t);
    const said: { msg?: string }[] = [];
    const logger = pino({ level: 'warn' }, { write: (line: string) => said.push(JSON.parse(line)) });
    const set = (value: string) => {
      for (const key of ['ipv4/ip_forward', 'ipv6/conf/all/forwarding']) writeFileSync(`/proc/sys/net/${key}`, value);
    };
    set('0');
    t.after(() => set('0'));
    const first = await start({ ...config, logger });
    const sees = (forwards: boolean) =>
      controlPlane.reports.some(
        ({ status }) => JSON.stringify(status?.forwarding) === JSON.stringify({ ipv4: forwards, ipv6: forwards }),
      );
    await until('the status tells that it does not', () => sees(false));
    await first.stop();
    const warnings = () => said.flatMap(({ msg }) => (msg?.includes('forwarding') ? [msg] : []));
    assert.deepEqual(warnings(), [
      'IPv4 and IPv6 forwarding is switched off on this router: none of it reaches protected destinations',
    ]);
    set('1');
    await start({ ...config, logger });
    await until('the status tells that it does', () => sees(true));
    assert.equal(warnings().length, 1);
  });

  test('the report says what enforces, with which versions, and how it fares', async (t) => {
    const { controlPlane, start } = await setUp(t);
    controlPlane.upsert(ruleOf(1), ruleOf(2));
    await start();
    await until('a status has come', () => controlPlane.reports.some(({ status }) => status?.rules === 2));
    const report = controlPlane.reports.findLast(({ status }) => status);
    assert.deepEqual(report?.enforcement, { mode: 'kernel' });
    const status = report?.status as Record<string, Record<string, unknown>>;
    assert.match(String(status.versions?.nft), /^\d+\.\d+\.\d+$/);
    assert.equal(status.versions?.driver, 'library');
    assert.equal(status.drift, 0);
    assert.equal(status.counters, 'kernel');
  });

  test('a dry edge tells of the table that an earlier run left, until it is gone', async (t) => {
    const { controlPlane, start } = await setUp(t);
    controlPlane.upsert(ruleOf(1));
    const first = await start();
    await acknowledged(controlPlane);
    await first.stop();
    const dry = await start({ driver: 'dry' });
    assert.deepEqual(dry.enforcement, {
      mode: 'dry',
      reason:
        'dry by configuration; but an older table is still in force in the kernel; remove it: nft delete table inet levee (and inet levee_proxied, where a SYN proxy was in force)',
      table_left: true,
    });
    await until('it is reported', () => controlPlane.reports.at(-1)?.enforcement.table_left === true);
    nft('delete table inet levee\n');
    await until('its end is reported', () => controlPlane.reports.at(-1)?.enforcement.table_left === undefined);
    assert.deepEqual(dry.enforcement, { mode: 'dry', reason: 'dry by configuration' });
  });

  test('an edge that may not look believes what an earlier run wrote down, and no other', async (t) => {
    const { controlPlane, config, start } = await setUp(t);
    controlPlane.upsert(ruleOf(1));
    const first = await start();
    await acknowledged(controlPlane);
    await first.stop();
    const withoutRights = async (): Promise<Record<string, unknown>> => {
      const { logger: _, ...settings } = { ...config, driver: 'auto' };
      const script = new URL('./testing/edge-process.ts', import.meta.url).pathname;
      const dropping = ['--inh-caps=-all', '--bounding-set=-all', process.execPath, script, JSON.stringify(settings)];
      const child = spawn('setpriv', dropping, { stdio: ['ignore', 'pipe', 'inherit'] });
      const gone = new Promise((resolve) => child.once('exit', resolve));
      try {
        const [line] = (await once(child.stdout, 'data')) as [Buffer];
        return JSON.parse(line.toString()) as Record<string, unknown>;
      } finally {
        child.kill('SIGKILL');
        await gone;
      }
    };
    const told = await withoutRights();
    assert.equal(told.table_left, true);
    assert.match(String(told.reason), /^not root: .*may still be in force; .*nft delete table inet levee/);
    const record = join(config.stateDirectory, tableRecordFile);
    writeFileSync(record, JSON.stringify({ ...JSON.parse(readFileSync(record, 'utf8')), boot_id: 'another' }));
    assert.equal((await withoutRights()).table_left, undefined);
  });

  test('filters are in force beside rules; what this kernel takes is reported, kind by kind, with each report', async (t) => {
    const { controlPlane, start } = await setUp(t);
    controlPlane.upsert(ruleOf(1), filterOf(2), filterOf(3, { dst: '2001:db8::/64' }), filterOf(4, { filter: 9999 }));
    await start();
    await acknowledged(controlPlane);
    assert.equal(kernelTable(), freshTable(controlPlane.entries.values()));
    const report = controlPlane.reports.findLast(({ cursor }) => cursor !== undefined);
    assert.deepEqual(
      report?.failures.map(({ uuid }) => uuid),
      [uuidOf(4)],
    );
    const taken = report?.capabilities ?? [];
    assert.ok(taken.includes(`filter:${dnsKind}`), taken.join());
    const known = filterKinds.map(({ id }) => `filter:${id}`);
    assert.deepEqual(
      taken.filter((each) => !known.includes(each)),
      [],
    );
    await until('a status has come', () => controlPlane.reports.some(({ status }) => status?.filters === 3));
    for (const { cursor, capabilities } of controlPlane.reports) {
      assert.deepEqual(capabilities, cursor === undefined ? undefined : taken);
    }
  });

  test('the first line of the log says what is enforced', async (t) => {
    const { start } = await setUp(t);
    const said: { msg: string }[] = [];
    const logger = pino({ level: 'info' }, { write: (line: string) => said.push(JSON.parse(line)) });
    await start({ logger });
    assert.match(
      said[0]?.msg ?? '',
      /^the edge enforces rules, filters \(.*\bdns\b.*\) and (no tunnels|tunnels \(.*\)) in the kernel$/,
    );
  });

  test('a state of the release before filters: its rules are in force at once, kinds are reported once a snapshot has come', async (t) => {
    const { controlPlane, config, start } = await setUp(t);
    controlPlane.upsert(filterOf(7), ...Array.from({ length: 4 }, (_, n) => ruleOf(n)));
    mkdirSync(config.stateDirectory);
    const head = { version: 1, cursor: `1.${controlPlane.position}`, mark: '0123456789abcdef', refused: {}, count: 1 };
    writeFileSync(join(config.stateDirectory, 'desired.1.snapshot'), renderRecord(head) + renderRecord([ruleOf(0)]));
    await controlPlane.cut();
    const edge = await start();
    assert.equal(kernelTable(), freshTable([ruleOf(0)]));
    await until('that is known to be in force', () => edge.applied === head.cursor);
    await controlPlane.restore();
    await until('kinds are reported', () => controlPlane.reports.at(-1)?.capabilities !== undefined);
    assert.equal(kernelTable(), freshTable(controlPlane.entries.values()));
    await edge.stop();
    const second = await start();
    await until('connected', () => second.connected);
    assert.equal(second.statistics.adoptions, 1);
    assert.equal(second.statistics.commits, 0);
  });

  test('from an older control plane rules are taken, and no kind is reported until it tells of filters too', async (t) => {
    const { controlPlane, start } = await setUp(t);
    controlPlane.tellAll(false);
    controlPlane.upsert(ruleOf(1), filterOf(2));
    await start();
    await acknowledged(controlPlane);
    controlPlane.upsert(ruleOf(3));
    await acknowledged(controlPlane);
    assert.equal(kernelTable(), freshTable([ruleOf(1), ruleOf(3)]));
    assert.ok(controlPlane.reports.every(({ capabilities }) => capabilities === undefined));
    controlPlane.tellAll(true);
    await controlPlane.cut();
    await controlPlane.restore();
    await until('kinds are reported', () => controlPlane.reports.at(-1)?.capabilities !== undefined);
    assert.equal(kernelTable(), freshTable(controlPlane.entries.values()));
  });

  test('a state of a newer release stops the start with the file named, and stays', async (t) => {
    const { controlPlane, config, start } = await setUp(t);
    controlPlane.upsert(ruleOf(1));
    const first = await start();
    await acknowledged(controlPlane);
    await first.stop();
    const file = join(config.stateDirectory, 'desired.9.snapshot');
    writeFileSync(file, renderRecord({ version: 3 }));
    const before = { generation: generation(), files: readdirSync(config.stateDirectory) };
    // Twice: nothing is left locked.
    for (let n = 0; n < 2; n++) await assert.rejects(startEdge(config), /desired\.9\.snapshot was written by a newer/);
    assert.deepEqual({ generation: generation(), files: readdirSync(config.stateDirectory) }, before);
  });

  test('30 kills at any moment under change: nothing acknowledged is ever missing, and all converges', async (t) => {
    const { controlPlane, config } = await setUp(t);
    const { logger: _, ...settings } = config;
    let edge: ChildProcess | undefined;
    t.after(() => edge?.kill('SIGKILL'));
    let started = 0;
    const run = (): ChildProcess => {
      const script = new URL('./testing/edge-process.ts', import.meta.url).pathname;
      const child = spawn(process.execPath, [script, JSON.stringify(settings)], {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      child.stdout.on('data', () => {
        started += 1;
      });
      return child;
    };
    /** What the control plane knows to be in force, with the port that names the version of each. */
    let inForce = new Map<string, AgentEntry>();
    let version = 0;
    const change = (): void => {
      const n = version % 40;
      version += 1;
      if (version % 7 === 0) controlPlane.remove(uuidOf((n * 3) % 40));
      else if (version % 5 === 0)
        controlPlane.upsert(filterOf(n, { port: { dst: { start: 1 + (version % 60_000) } } }));
      else controlPlane.upsert(ruleOf(n, { port: { dst: { start: 1 + (version % 60_000) } } }));
    };
    const sample = (): void => {
      if (controlPlane.acknowledged === controlPlane.position) inForce = new Map(controlPlane.entries);
    };
    for (let round = 0; round < 30; round++) {
      const before = started;
      edge = run();
      const killAt = round % 3 === 0 ? 0 : 1 + ((round * 37) % 60);
      let changes = 0;
      await until(
        'it is up, and some changes on',
        () => {
          change();
          sample();
          if (started > before) changes += 1;
          return changes > killAt;
        },
        20_000,
      );
      const gone = new Promise((resolve) => edge?.once('exit', resolve));
      edge.kill('SIGKILL');
      await gone;
      const table = kernelTable();
      // What was acknowledged and has not been changed since must stand in the kernel now.
      for (const [uuid, entry] of inForce) {
        if (controlPlane.entries.get(uuid) !== entry) continue;
        const port = entry.port?.dst?.start;
        const line = isAgentFilter(entry) ? `${port} goto f_udp_${uuid.replaceAll('-', '')}` : `${port} counter`;
        assert.match(table, new RegExp(`[ =]${line}`), `round ${round}: ${uuid}`);
      }
    }
    edge = run();
    await until('all is acknowledged', () => controlPlane.acknowledged === controlPlane.position, 20_000);
    assert.equal(kernelTable(), freshTable(controlPlane.entries.values()));
  });
});

test('a dry edge follows and acknowledges, and says that nothing is enforced', async (t) => {
  const { controlPlane, start } = await setUp(t);
  controlPlane.upsert(ruleOf(1), ruleOf(2, { dst: 'nonsense' }), filterOf(3));
  await start({ driver: 'dry' });
  await acknowledged(controlPlane);
  const report = controlPlane.reports.findLast(({ cursor }) => cursor !== undefined);
  assert.deepEqual(report?.enforcement, { mode: 'dry', reason: 'dry by configuration' });
  assert.equal(report?.failures[0]?.uuid, uuidOf(2));
  assert.ok(controlPlane.reports.every(({ capabilities }) => capabilities === undefined));
  if (!skip) assert.equal(kernelTable(), '');
});

test('a key that is not accepted any more is said loudly once, the edge goes on asking, and takes up where it was', async (t) => {
  const { controlPlane, start } = await setUp(t);
  controlPlane.upsert(ruleOf(1));
  const said: { level: number; msg: string }[] = [];
  const logger = pino({ level: 'error' }, { write: (line: string) => said.push(JSON.parse(line)) });
  const edge = await start({ driver: skip ? 'dry' : 'kernel', logger });
  await acknowledged(controlPlane);
  const before = skip ? '' : kernelTable();
  controlPlane.revokeKey(true);
  const refused = controlPlane.refusals;
  await until('stream and reports were refused many times', () => controlPlane.refusals > refused + 20);
  assert.equal(edge.connected, false);
  assert.deepEqual(
    said.map(({ level }) => level),
    [50],
  );
  assert.match(said[0]?.msg ?? '', /enrol the router again/);
  if (!skip) assert.equal(kernelTable(), before);
  controlPlane.upsert(ruleOf(2));
  controlPlane.revokeKey(false);
  await acknowledged(controlPlane);
});

test('an edge that cannot begin holds nothing: it can be started again', async (t) => {
  const { controlPlane, config, start } = await setUp(t);
  const record = join(config.stateDirectory, tableRecordFile);
  mkdirSync(record, { recursive: true });
  await assert.rejects(start({ driver: 'dry' }), /EISDIR/);
  rmdirSync(record);
  await start({ driver: 'dry' });
  await acknowledged(controlPlane);
});

test('without a key an edge says where it looked', async (t) => {
  const { config } = await setUp(t);
  const { key: _, ...keyless } = config;
  await assert.rejects(startEdge(keyless), /key cannot be read from .*state\/router\.key \(ENOENT\); enrol the router/);
});
