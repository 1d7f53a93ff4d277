/**
 * Guarantees to somebody who follows the README with a fresh installation: its lines work as they stand. Only addresses
 * and folders are put in that let two installations live on one machine; a line that needs something filled in
 * (`<token>`) is left to the reader.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { test } from 'node:test';
import { labObstacle } from '@levee/lab/namespace.ts';
import { RouterPath } from '@levee/lab/router-path.ts';
import { RunningLevee } from './running-levee.ts';

const readme = readFileSync(join(import.meta.dirname, '..', 'README.md'), 'utf8');
const blocks = [...readme.matchAll(/^```sh\n(.*?)^```$/gms)].map((match) => match[1] ?? '');

/** Notes the head of each answer before it hands it on. */
const notingCurl = `#!/bin/sh
exec /usr/bin/curl --dump-header "$(mktemp "$ANSWERS/$(date +%s%N)-XXXXXX")" "$@"
`;

interface Followed {
  readonly output: string;
  readonly complaints: string;
  /** In the order of the lines. */
  readonly statuses: readonly number[];
}

function follow(levee: RunningLevee, dnsPort: number, folder: string): Followed {
  const answers = join(folder, 'answers');
  const programs = join(folder, 'bin');
  for (const each of [answers, programs]) mkdirSync(each);
  writeFileSync(join(programs, 'curl'), notingCurl);
  chmodSync(join(programs, 'curl'), 0o755);
  symlinkSync(levee.dataDirectory, join(folder, '.levee'));
  const script = blocks
    .filter((block) => !block.includes('<token>'))
    .join('\n')
    .replaceAll('http://127.0.0.1:8080', levee.summary.address)
    .replaceAll('-p 5300', `-p ${dnsPort}`)
    .replaceAll('/tmp/', `${folder}/`);
  const { stdout, stderr } = spawnSync('bash', ['--norc', '-u', '-c', script], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'pipe'],
    encoding: 'utf8',
    env: { PATH: [programs, process.env.PATH].join(delimiter), ANSWERS: answers, HOME: folder },
    timeout: 120_000,
  });
  const statuses = readdirSync(answers)
    .sort()
    .map((name) => Number(/^HTTP\/1\.1 (\d{3})/.exec(readFileSync(join(answers, name), 'utf8'))?.[1]));
  return { output: stdout, complaints: stderr, statuses };
}

test('the lines of the README work as they stand', async () => {
  assert.ok(blocks.length >= 4);
  const noLab = labObstacle() !== undefined;
  using path = noLab ? undefined : new RouterPath({ protectedPrefixes: ['203.0.113.0/24'], label: 'readme' });
  const edge = path === undefined ? { LEVEE_EDGE_DRIVER: 'dry' } : { LEVEE_EDGE_NETNS: path.router.name };
  const local = {
    LEVEE_DNS_LISTEN: '127.0.0.1:0',
    LEVEE_FLOW_LISTEN: '127.0.0.1:0',
    LEVEE_DNS_RESOLVERS: '127.0.0.1:9',
  };
  const folder = mkdtempSync(join(tmpdir(), `levee-readme-${process.pid}-`));
  const levee = await RunningLevee.start({ environment: { ...edge, ...local } });
  try {
    const [dns = ''] = levee.summary.dns;
    const { output, complaints, statuses } = follow(levee, Number(dns.split(':').at(-1)), folder);
    assert.equal(complaints, '');
    // One line shows how errors are told.
    assert.deepEqual(
      statuses.filter((status) => status !== 200),
      [400],
      output,
    );
    const lines = blocks.join('\n').match(/^(?:\w+=\$\()?(?:call \$|timeout \d+ curl)/gm) ?? [];
    assert.equal(statuses.length, lines.length, 'every line sent its request');
    assert.match(
      output,
      /"verdict":"drop","decided_by":"[-0-9a-f]{36}","trail":\[.*"kind":"dns"/,
      'the filter is explained',
    );
    if (!noLab) assert.match(output, /"state":"active".*"filter":22.*"hits":\{"packets":0,/, 'and in force');
    assert.match(output, /^mail\.example\.net\.$/m, 'the name is served');
    assert.match(
      output,
      /^ip link add name lv\w+ .* local 198\.51\.100\.9 remote 192\.0\.2\.1 /m,
      'the tunnel can be pasted',
    );
    assert.match(output, /^Remote=192\.0\.2\.2$/m, 'the other router has an end of it');
    assert.match(output, /^data: ?\{.*firewall_rule/m, 'events are told');
  } finally {
    await levee.stop();
    rmSync(folder, { recursive: true, force: true });
  }
});
