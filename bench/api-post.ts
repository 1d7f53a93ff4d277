/**
 * POST /firewall/rule against pgbench running the same statement, for one rule, on the same database: in turns in one
 * run, both with 16 connections and durable commits. Target: at least 0.5.
 */
import { execFile } from 'node:child_process';
import { existsSync, globSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { createRulesStatement } from '@levee/server/commands/create-rule.ts';
import { type LoadResult, runLoad } from './api/keep-alive-client.ts';
import { makeUser, requestText, startMeasured } from './api/measured-server.ts';

const run = promisify(execFile);
const rounds = 3;
const seconds = Number(process.argv[2] ?? 5);
const connections = 16;
const pgbench = globSync('/usr/lib/postgresql/*/bin/pgbench').at(-1) ?? '/usr/bin/pgbench';
if (!existsSync(pgbench)) throw new Error('pgbench is needed (package postgresql-contrib or postgresql)');

const server = await startMeasured();
const { userKey, userUuid } = await makeUser(server);
const folder = mkdtempSync(join(tmpdir(), 'levee-bench-'));
// Spaces behind the colons: pgbench takes a colon and a word for one of its variables.
const fields = '{"dst": "10.2.3.4", "protocol": "udp", "action": "drop", "priority": 1000, "disabled": false}';
const script = join(folder, 'create.sql');
// pgbench takes values from variables only; the generated uuid is the one value that differs between runs.
const values = [
  'array[gen_random_uuid()]',
  `array['${userUuid}']`,
  `array['10.2.3.4']`,
  'array[false]',
  `array['${fields}']`,
  'array[null]',
  'array[null]',
  'array[null]',
  'array[gen_random_uuid()]',
  `array['127.0.0.1']`,
  `array['0190a5d0-0000-7000-8000-000000000000']`,
  'array[null]',
  'false',
];
const text = createRulesStatement.text.replaceAll(/\$(\d+)/g, (_, index: string) => values[Number(index) - 1] ?? '');
writeFileSync(script, text);

async function pgbenchRate(): Promise<number> {
  const { user, database } = server.database;
  // The embedded database's folder is named by a descriptor of the server's process.
  const socketDirectory = server.database.socketDirectory.replace('/self/', `/${server.process.pid}/`);
  const args = [
    '-h',
    socketDirectory,
    '-U',
    user,
    '-n',
    '-M',
    'prepared',
    '-f',
    script,
    '-c',
    `${connections}`,
    '-j',
    '2',
  ];
  const { stdout } = await run(pgbench, [...args, '-T', `${seconds}`, database]);
  return Number(/tps = ([\d.]+) \(without/.exec(stdout)?.[1]);
}

let turn = 0;
const next = () => {
  turn++;
  const dst = `10.${turn & 63}.${(turn >> 6) & 255}.${(turn >> 14) & 255}`;
  return requestText('POST', '/firewall/rule', userKey, `{"dst":"${dst}","protocol":"udp","action":"drop"}`);
};
const ours: LoadResult[] = [];
const theirs: number[] = [];
await runLoad({ url: server.url, connections, seconds: 1, next });
for (let round = 0; round < rounds; round++) {
  ours.push(await runLoad({ url: server.url, connections, seconds, next }));
  theirs.push(await pgbenchRate());
}
rmSync(folder, { recursive: true, force: true });
await server.stop();

const best = ours.toSorted((a, b) => b.perSecond - a.perSecond)[0] as LoadResult;
const rival = Math.max(...theirs);
console.log(`${connections} connections, ${rounds} rounds of ${seconds} s each, best of each`);
console.table([
  {
    who: 'POST /firewall/rule',
    'commits/s': Math.round(best.perSecond),
    'p50 ms': best.p50Milliseconds.toFixed(2),
    'p99 ms': best.p99Milliseconds.toFixed(2),
  },
  { who: 'pgbench, the same statement', 'commits/s': Math.round(rival) },
]);
const ratio = best.perSecond / rival;
console.log(`ratio ${ratio.toFixed(2)} (target ≥ 0.5): ${ratio >= 0.5 ? 'met' : 'MISSED'}`);
