/**
 * Guarantees of detection that is divided over NATS: two collectors, two detectors, a control plane, each a process of its own, and
 * a real NATS. An attack is one attack whoever of them is killed.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { sflow5 } from '@levee/detector/collect/testing/sflow-flood.ts';
import { program, RunningLevee, until } from './running-levee.ts';

const patience = 20_000;
/** Milliseconds without traffic after which an attack has ended. */
const hold = 5_000;
const dst = '203.0.113.7';
const token = 'of-this-test';

interface Part {
  readonly child: ChildProcess;
  readonly said: { json?: { readonly listen: readonly string[] }; errors: string };
}

const children = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of children) child.kill('SIGKILL');
});

function start(command: string, args: readonly string[], environment: NodeJS.ProcessEnv, folder: string): Part {
  const child = spawn(command, args, {
    cwd: folder,
    env: { PATH: process.env.PATH, HOME: folder, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  children.add(child);
  const said: Part['said'] = { errors: '' };
  let text = '';
  child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
    const line = /^\{.*\}$/m.exec(text)?.[0];
    if (line !== undefined) said.json ??= JSON.parse(line);
  });
  child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
    said.errors += chunk;
  });
  child.once('close', () => children.delete(child));
  return { child, said };
}

async function end({ child }: Part, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const closed = once(child, 'close');
  child.kill(signal);
  await closed;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, 'close');
  return port;
}

describe('detection over NATS', () => {
  const folder = mkdtempSync(join(tmpdir(), `levee-scale-out-${process.pid}-`));
  let natsPort: number;
  let nats: Part;
  let levee: RunningLevee;
  let key: string;
  let sender: Socket;
  let flood: NodeJS.Timeout | undefined;
  /** Datagrams to each collector. */
  let sent = 0;
  let collectors: Part[] = [];
  let detectors: { readonly part: Part; readonly name: string; readonly environment: NodeJS.ProcessEnv }[] = [];

  const startNats = () =>
    start('nats-server', ['-a', '127.0.0.1', '-p', String(natsPort), '--auth', token], {}, folder);
  const startPart = (name: string, role: string, environment: NodeJS.ProcessEnv) =>
    start(
      process.execPath,
      [program, '-o', 'json', 'detect', '--no-config'],
      {
        LEVEE_DETECT_ROLE: role,
        LEVEE_DETECT_NATS: `nats://127.0.0.1:${natsPort}`,
        LEVEE_DETECT_NATS_TOKEN: token,
        LEVEE_DETECT_STATE_DIR: join(folder, name),
        LEVEE_DETECT_WORKERS: '1',
        LEVEE_FLOW_LISTEN: '127.0.0.1:0',
        LEVEE_LOG_LEVEL: 'info',
        ...environment,
      },
      folder,
    );

  interface Bus {
    readonly connected: boolean;
    readonly collectors: number;
    readonly partitions: number;
  }
  const standing = async (name: string): Promise<Bus | undefined> => {
    const all = await levee.good('GET', '/operator/detector', levee.operatorKey);
    return all.find((each: { name: string }) => each.name === name)?.status?.bus;
  };
  const exporter = async () => (await levee.good('GET', '/operator/exporter', levee.operatorKey))[0];
  const attacks = () => levee.good('GET', `/attacks?dst=${dst}`, key);
  const begin = () => {
    const ports = collectors.map(({ said }) => Number(said.json?.listen[0]?.split(':')[1]));
    // Each sees one half of it: one in 16 of 8 000 packets/s.
    flood = setInterval(() => {
      sent++;
      for (const port of ports) sender.send(sflow5(dst, sent, 16, 5), port, '127.0.0.1');
    }, 20);
  };
  const names = async () => (await attacks()).map(({ external_id }: { external_id: string }) => external_id);
  const isMeasuredAfter = async (uuid: string, since: number) => {
    const [{ samples }] = await levee.good('GET', `/attacks/${uuid}`, key);
    return samples.some(({ at }: { at: string }) => Date.parse(at) > since);
  };

  before(async () => {
    natsPort = await freePort();
    nats = startNats();
    levee = await RunningLevee.start({ environment: { LEVEE_EDGE_DRIVER: 'off', LEVEE_FLOW_LISTEN: 'off' } });
    key = (await levee.createProvider('Example Hosting', ['203.0.113.0/24', '198.51.100.0/24'])).key;
    await levee.good('POST', '/operator/detection-policy', levee.operatorKey, {
      scope: '203.0.113.0/28',
      thresholds: { 'udp-other': { pps: 1_000 } },
      hold_s: hold / 1_000,
    });
    sender = createSocket('udp4');
    collectors = ['one', 'two'].map((name) => startPart(`collector-${name}`, 'collect', {}));
    detectors = await Promise.all(
      ['east', 'west'].map(async (name) => {
        const made = await levee.good('POST', '/operator/detector', levee.operatorKey, { name });
        const environment = { LEVEE_DETECT_CONTROL: levee.summary.address, LEVEE_DETECT_KEY: made.key };
        return { part: startPart(`detector-${name}`, 'detect', environment), name, environment };
      }),
    );
    await until('collectors to listen', patience, () => collectors.every(({ said }) => said.json !== undefined));
  });
  after(async () => {
    clearInterval(flood);
    sender?.close();
    await Promise.all([...collectors, ...detectors.map(({ part }) => part)].map((part) => end(part, 'SIGKILL')));
    await levee?.stop();
    if (nats !== undefined) await end(nats, 'SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  });

  test('an attack that two collectors see in halves is found once, and goes on under its name when its detector is killed', async (t) => {
    begin();
    await until('an attack', patience, async () => (await attacks()).length > 0);
    const [found] = await attacks();
    assert.deepEqual([found.dst, found.source, found.vectors], [dst, 'levee', ['udp-other']]);
    await until('its whole rate', patience, async () => (await attacks())[0].peak_pps > 6_000);
    const owner = detectors.find(({ part }) => part.said.errors.includes(found.external_id));
    assert.ok(owner !== undefined, 'one of them has told of it');

    await end(owner.part, 'SIGKILL');
    const killed = Date.now();
    await until('news of it from the other', patience, () => isMeasuredAfter(found.uuid, killed));
    const took = Date.now() - killed;
    t.diagnostic(`taken over in ${took} ms`);
    assert.ok(took <= 5_000, `${took} ms`);
    const heir = detectors.find((each) => each !== owner)?.name ?? '';
    await until('the whole share at the other', patience, async () => (await standing(heir))?.partitions === 64);
    assert.deepEqual(await names(), [found.external_id]);
    const told = (await exporter()).live.datagrams;
    assert.ok(told > sent && told <= 2 * sent, `of ${sent} datagrams at each collector ${told} in all were told`);
  });

  test('nothing ends or begins while NATS is away for longer than the hold, whoever begins anew meanwhile', async (t) => {
    const [found] = await attacks();
    const name =
      detectors.find(({ part }) => part.child.exitCode === null && part.child.signalCode === null)?.name ?? '';
    await end(nats, 'SIGKILL');
    const away = Date.now();
    await until('its absence to be told', patience, async () => (await standing(name))?.connected === false);
    // The one that was killed, and a collector, which nobody can tell anything.
    detectors = detectors.map((each) =>
      each.name === name ? each : { ...each, part: startPart(`detector-${each.name}`, 'detect', each.environment) },
    );
    const [, second] = collectors as [Part, Part];
    await end(second, 'SIGKILL');
    const [listen = ''] = second.said.json?.listen ?? [];
    collectors[1] = startPart('collector-two', 'collect', { LEVEE_FLOW_LISTEN: listen });
    await until('the hold to be over', patience, () => Date.now() - away > hold);
    nats = startNats();
    const back = Date.now();
    await until('news of it', patience, () => isMeasuredAfter(found.uuid, back));
    t.diagnostic(`measured again ${Date.now() - back} ms after NATS was there`);
    await until('both halves', patience, async () => {
      const [{ samples }] = await levee.good('GET', `/attacks/${found.uuid}`, key);
      return samples.some(({ at, pps }: { at: string; pps: number }) => Date.parse(at) > back && pps > 6_000);
    });
    await until('shares of both', patience, async () => {
      const all = await Promise.all(detectors.map((each) => standing(each.name)));
      return all.every((bus) => bus?.connected === true && bus.collectors === 2 && bus.partitions < 64);
    });
    assert.deepEqual([(await attacks())[0].state, await names()], ['ongoing', [found.external_id]]);
  });

  test('it ends once', async () => {
    const [found] = await attacks();
    clearInterval(flood);
    await until('its end', patience, async () => (await attacks())[0].state === 'ended');
    assert.deepEqual(await names(), [found.external_id]);
  });
});
