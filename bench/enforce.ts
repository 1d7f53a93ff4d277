/**
 * API answer → enforced in the kernel, by real packets, against the kernel's own commit time in the same run.
 *
 * Rules are created at a steady rate over HTTP while packets that they forbid run through the router, one a
 * millisecond for each change under way. A rule is enforced when the first of its packets does not arrive; time counts
 * from the API's answer. The rival is bench/enforce/commit-time.ts: the same changes straight into the kernel.
 *
 * npm run bench -- enforce [rules,… = 1000,10000,100000] [changes a second = 50] [seconds = 10]
 */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { Namespace } from '@levee/lab/namespace.ts';
import { RouterPath } from '@levee/lab/router-path.ts';
import { RunningLevee, until } from '../e2e/running-levee.ts';
import { EnforcementProbe } from './enforce/probe.ts';
import { changeOf, changePort, prefix, quantile, rulesOf, rulesPerDestination } from './enforce/workload.ts';

const [sizes = '1000,10000,100000', perSecond = '50', seconds = '10'] = process.argv.slice(2);
const changes = Number(perSecond) * Number(seconds);

interface Result {
  rules: number;
  kernel: number[];
  /** Answer → enforced; below 0 when packets were dropped before the answer had arrived here. */
  enforced: number[];
  answers: number[];
}

const results: Result[] = [];
for (const size of sizes.split(',').map(Number)) {
  process.stderr.write(`${size} rules: `);
  const kernel = await commitTimes(size);
  const result = await enforcementTimes(size);
  results.push({ rules: size, kernel, ...result });
  process.stderr.write('done\n');
}
print();

async function commitTimes(rules: number): Promise<number[]> {
  process.stderr.write('kernel alone, ');
  using namespace = new Namespace('commit');
  const file = join(import.meta.dirname, 'enforce', 'commit-time.ts');
  const args = ['netns', 'exec', namespace.name, process.execPath, file, String(rules), '200'];
  const { stdout } = await promisify(execFile)('ip', args, { maxBuffer: 1 << 26 });
  return (JSON.parse(stdout).commits as number[]).sort((a, b) => a - b);
}

async function enforcementTimes(rules: number): Promise<{ enforced: number[]; answers: number[] }> {
  using path = new RouterPath({ protectedPrefixes: [prefix], label: 'enforce' });
  const levee = await RunningLevee.start({
    environment: { LEVEE_EDGE_NETNS: path.router.name, LEVEE_RATE_LIMIT: 'off' },
  });
  try {
    const { key } = await levee.createProvider('Bench', [prefix]);
    const destinations = rules / rulesPerDestination;
    process.stderr.write('loading, ');
    await fill(levee, key, destinations);
    process.stderr.write('changing, ');
    using probe = new EnforcementProbe(path);
    const answers: number[] = [];
    const pending: Promise<void>[] = [];
    const startedAt = performance.now();
    for (let number = 0; number < changes; number++) {
      const due = startedAt + (number * 1000) / Number(perSecond);
      await probe.runUntil(due);
      pending.push(change(levee, key, number, destinations, probe, answers));
    }
    let answered = false;
    const all = Promise.all(pending).finally(() => {
      answered = true;
    });
    while (!answered) await probe.runUntil(performance.now() + 5);
    await all;
    await probe.runUntil(performance.now() + 500);
    const enforced = probe.results();
    return { enforced: enforced.sort((a, b) => a - b), answers: answers.sort((a, b) => a - b) };
  } finally {
    await levee.stop();
  }
}

async function change(
  levee: RunningLevee,
  key: string,
  number: number,
  destinations: number,
  probe: EnforcementProbe,
  answers: number[],
): Promise<void> {
  const fields = changeOf(number, destinations);
  const askedAt = performance.now();
  probe.watch(number, fields.dst, changePort(number));
  await levee.good('POST', '/firewall/rule', key, fields);
  const answeredAt = performance.now();
  answers.push(answeredAt - askedAt);
  probe.answered(number, answeredAt);
}

async function fill(levee: RunningLevee, key: string, destinations: number): Promise<void> {
  let next = 0;
  const worker = async () => {
    while (next < destinations) {
      const rules = rulesOf(next++);
      const bare = { rules: rules.map(({ dst: _, ...fields }) => fields) };
      await levee.good('PUT', `/firewall/rules?dst=${rules[0]?.dst}`, key, bare);
    }
  };
  await Promise.all(Array.from({ length: 8 }, worker));
  const [last] = rulesOf(destinations - 1);
  await until('the rules to be in the kernel', 300_000, async () => {
    const found = await levee.good('GET', `/firewall/rule?dst=${last?.dst}`, key);
    const ready =
      found.length === rulesPerDestination && found.every((rule: { state: string }) => rule.state === 'active');
    if (!ready) await delay(500);
    return ready;
  });
}

function print(): void {
  const column = (value: number) => value.toFixed(1).padStart(9);
  console.log('API answer → enforced in the kernel, milliseconds; ratio = enforced / kernel alone');
  console.log('                kernel alone        API answer          enforced            above kernel       ratio');
  console.log('    rules    median      p99    median      p99    median      p99    median      p99   median');
  let good = true;
  for (const { rules, kernel, answers, enforced } of results) {
    const [k50, k99] = [quantile(kernel, 0.5), quantile(kernel, 0.99)];
    const [e50, e99] = [quantile(enforced, 0.5), quantile(enforced, 0.99)];
    const cells = [k50, k99, quantile(answers, 0.5), quantile(answers, 0.99), e50, e99, e50 - k50, e99 - k50];
    console.log(`${String(rules).padStart(9)}${cells.map(column).join('')}${(e50 / k50).toFixed(2).padStart(9)}`);
    if (enforced.length !== changes)
      console.log(`          only ${enforced.length} of ${changes} changes were seen enforced`);
    good &&= enforced.length === changes && e50 - k50 <= 5 && e99 - k50 <= 50 && (enforced.at(-1) ?? 0) <= 100;
  }
  const [worst] = results.map((result) => result.enforced.at(-1) ?? Number.NaN).sort((a, b) => b - a);
  console.log(`slowest of all: ${worst?.toFixed(1)} ms`);
  console.log(
    `target: median ≤ 5 ms and p99 ≤ 50 ms above the kernel's median, all ≤ 100 ms: ${good ? 'met' : 'MISSED'}`,
  );
}
