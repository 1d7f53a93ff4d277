import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { type ApiFixture, type Holder, startApi } from '@levee/server/http/testing/api-fixture.ts';

const script = join(import.meta.dirname, '../deploy/fastnetmon/levee-notify.sh');

let api: ApiFixture;
let user: Holder;
let folder: string;
let conf: string;
/** As the README beside the script has it made. */
let scriptKey: string;

before(async () => {
  api = await startApi();
  const provider = await api.provider(['203.0.113.0/24', '2001:db8::/32']);
  user = await api.user(provider, ['203.0.113.0/28', '2001:db8:7::/48']);
  const body = { name: 'fastnetmon', operations: ['recordFastnetmonAttack'], sources: ['127.0.0.1'] };
  scriptKey = (await api.call('createApiKey', {}, { key: api.operatorKey, body })).body.key;
  folder = mkdtempSync(join(tmpdir(), `levee-notify-test-${process.pid}-`));
  conf = configuration('good', api.url);
});
after(async () => {
  rmSync(folder, { recursive: true, force: true });
  await api.stop();
});

function configuration(name: string, url: string, mode = 0o600, key = scriptKey): string {
  const path = join(folder, `${name}.conf`);
  writeFileSync(path, `# of the notify script\nurl = ${url}/v1/\n  key=${key}  \n`);
  chmodSync(path, mode);
  return path;
}

interface Ran {
  readonly code: number | null;
  readonly said: string;
}

/** With the system's own sh, in a folder of its own. */
function run(args: readonly string[], input: string | Buffer, with_ = conf): Promise<Ran> {
  return new Promise((resolve, reject) => {
    const child = spawn('sh', [script, ...args], {
      cwd: folder,
      env: { PATH: process.env.PATH, LEVEE_NOTIFY_CONF: with_, TMPDIR: folder },
      stdio: ['pipe', 'ignore', 'pipe'],
    });
    let said = '';
    child.stderr.setEncoding('utf8').on('data', (data) => {
      said += data;
    });
    child.stdin.on('error', reject);
    child.stdin.end(input);
    child.on('error', reject);
    child.on('close', (code) => resolve({ code, said }));
  });
}

const attacksOn = async (dst: string) =>
  (await api.call('listAttacks', {}, { key: user.key, query: `?dst=${dst}` })).body;

const details = `IP: 203.0.113.7
Attack type: udp_flood
Initial attack power: 148211 packets per second
Peak attack power: 151902 packets per second
Attack direction: incoming
Attack protocol: udp
Total incoming traffic: 1204 mbps
Total incoming pps: 148211 packets per second

2026-01-31 12:00:00.104233 198.51.100.9:123 > 203.0.113.7:40112 protocol: udp frag: 0  packets: 3 size: 482 bytes
`;

test('text format: a ban begins an attack, details add to it, an unban ends it', async () => {
  const dst = '203.0.113.7';
  assert.deepEqual(await run([dst, 'incoming', '148211', 'ban'], details), { code: 0, said: '' });
  assert.equal((await run([dst, 'incoming', '148211', 'attack_details'], details)).code, 0);
  const [attack, ...others] = await attacksOn(dst);
  assert.deepEqual(
    [others, attack.state, attack.source, attack.vectors, attack.peak_pps, attack.peak_bps],
    [[], 'ongoing', 'fastnetmon', ['udp_flood'], 151_902, 1_204_000_000],
  );
  const [whole] = (await api.call('readAttack', { uuid: attack.uuid }, { key: user.key })).body;
  assert.deepEqual(whole.top_sources, [{ source: '198.51.100.9', share: 1 }]);
  assert.equal((await run([dst, 'incoming', '148211', 'unban'], '')).code, 0);
  assert.deepEqual(
    (await attacksOn(dst)).map(({ uuid, state }: { uuid: string; state: string }) => [uuid, state]),
    [[attack.uuid, 'ended']],
  );
});

test('JSON format: the document on standard input is passed on as it is', async () => {
  const document = (action: string) =>
    JSON.stringify({
      ip: '2001:db8:7::9',
      action,
      alert_scope: 'host',
      attack_details: {
        attack_uuid: '5a8e7a1c-4f35-4c5e-9a0c-0f7f9a1f9d22',
        attack_type: 'syn_flood',
        attack_direction: 'incoming',
        peak_attack_power: 77_000,
        total_incoming_traffic: 5_000_000,
      },
    });
  assert.equal((await run(['ban', '2001:db8:7::9'], document('ban'))).code, 0);
  assert.equal((await run([], document('unban'))).code, 0);
  const [attack, ...others] = await attacksOn('2001:db8:7::9');
  assert.deepEqual(
    [others, attack.state, attack.external_id, attack.vectors, attack.peak_pps, attack.peak_bps],
    [[], 'ended', '5a8e7a1c-4f35-4c5e-9a0c-0f7f9a1f9d22', ['syn_flood'], 77_000, 40_000_000],
  );
});

test('nothing in the details is evaluated, and they arrive as text', async () => {
  const marker = join(folder, 'evaluated');
  const hostile = Buffer.concat([
    Buffer.from(`Attack type: udp_flood\n`),
    Buffer.from(`$(touch ${marker}) \`touch ${marker}\` ; touch ${marker} | touch ${marker} && touch ${marker}\n`),
    Buffer.from(`"},"ip":"203.0.113.1","x":{"y":"\\" \\\\" \\u0000 %s %n %d \\n \\0 ' '"'"' \r\n`),
    Buffer.from(`@/etc/passwd\n-o ${marker}\n--output ${marker}\nheader = "x: y"\n\u2028 \u202e ¡\t!\n`),
    Buffer.from(Array.from({ length: 256 }, (_, index) => index)),
    Buffer.from('no end of line'),
  ]);
  assert.deepEqual(await run(['203.0.113.2', 'incoming', '007', 'ban'], hostile), { code: 0, said: '' });
  const [attack, ...others] = await attacksOn('203.0.113.2');
  assert.deepEqual([others, attack.vectors, attack.peak_pps], [[], ['udp_flood'], 7]);
  assert.deepEqual(await attacksOn('203.0.113.1'), []);
  assert.equal(existsSync(marker), false);
});

test("arguments that are none of FastNetMon's are refused before anything is sent", async () => {
  const marker = join(folder, 'evaluated');
  const inert = [
    [`203.0.113.3;touch ${marker}`, 'incoming', '1', 'ban'],
    [`$(touch ${marker})`, 'incoming', '1', 'ban'],
    ['203.0.113.3","action":"x', 'incoming', '1', 'ban'],
    ['203.0.113.3', 'incoming', '1', `ban"; touch ${marker}`],
    ['-K', 'incoming', '1', 'ban'],
    ['203.0.113.3', 'incoming', '1'],
    [],
  ];
  for (const args of inert) assert.equal((await run(args, 'Attack type: x\n')).code, 1, `${args}`);
  assert.deepEqual(await attacksOn('203.0.113.3'), []);
  for (const direction of [`incoming$(touch ${marker})`, '"', 'INCOMING']) {
    assert.equal((await run(['203.0.113.4', direction, `1$(touch ${marker})`, 'ban'], '')).code, 0, direction);
  }
  assert.equal((await attacksOn('203.0.113.4')).length, 1);
  assert.equal(existsSync(marker), false);
});

test('what goes out of the address is left out, and is no failure', async () => {
  assert.deepEqual(await run(['203.0.113.5', 'outgoing', '9', 'ban'], details), { code: 0, said: '' });
  assert.deepEqual(await attacksOn('203.0.113.5'), []);
});

test('all of standard input is read, however much it is', async () => {
  const long = Buffer.from(details + `${'x'.repeat(199)}\n`.repeat(40_000));
  assert.equal((await run(['203.0.113.6', 'incoming', '5', 'ban'], long)).code, 0);
  assert.equal((await attacksOn('203.0.113.6'))[0].peak_pps, 151_902);
});

test('a configuration that others may read is refused, and so is one that says too little', async () => {
  for (const mode of [0o644, 0o640, 0o602]) {
    const ran = await run(
      ['203.0.113.8', 'incoming', '5', 'ban'],
      details,
      configuration(`mode${mode}`, api.url, mode),
    );
    assert.equal(ran.code, 1);
    assert.match(ran.said, /its mode must be 0600/);
  }
  const cases = [
    join(folder, 'absent.conf'),
    configuration('file', 'file:///etc'),
    configuration('key', api.url, 0o600, '$(id)'),
  ];
  for (const each of cases)
    assert.equal((await run(['203.0.113.8', 'incoming', '5', 'ban'], details, each)).code, 1, each);
  assert.deepEqual(await attacksOn('203.0.113.8'), []);
});

/** Answers with these statuses, one a request, then 200; and looks at the world while a request waits. */
async function pretend(
  statuses: number[],
  look: () => void = () => {},
): Promise<{ url: string; server: Server; seen: string[] }> {
  const seen: string[] = [];
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (data) => {
      body += data;
    });
    request.on('end', () => {
      look();
      seen.push(`${request.method} ${request.url} ${request.headers['x-api-key']} ${body.length > 0}`);
      response.writeHead(statuses.shift() ?? 200, { 'content-type': 'application/json' }).end('{"message":"so"}');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server, seen };
}

test('what may pass is tried again, what is refused is not, and the key shows in no list of processes', async () => {
  const exposed: string[] = [];
  const look = () => {
    for (const entry of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
      try {
        const line = readFileSync(`/proc/${entry}/cmdline`, 'utf8');
        if (line.includes(scriptKey)) exposed.push(line);
      } catch {
        // It ended meanwhile.
      }
    }
  };
  const passing = await pretend([503, 200], look);
  const refusing = await pretend([400]);
  try {
    const args = ['203.0.113.9', 'incoming', '5', 'ban'];
    assert.deepEqual(await run(args, details, configuration('passing', passing.url)), { code: 0, said: '' });
    const request = `POST /v1/operator/attack/fastnetmon ${scriptKey} true`;
    assert.deepEqual(passing.seen, [request, request]);
    assert.deepEqual(exposed, []);
    const refused = await run(args, details, configuration('refusing', refusing.url));
    assert.equal(refused.code, 1);
    assert.match(refused.said, /Levee answered 400: \{"message":"so"\}/);
    assert.equal(refusing.seen.length, 1);
  } finally {
    passing.server.close();
    refusing.server.close();
  }
});

test('it leaves nothing behind', () => {
  assert.deepEqual(
    readdirSync(folder).filter((name) => name.startsWith('levee-notify.')),
    [],
  );
});
