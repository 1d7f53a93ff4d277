/**
 * Loading a whole table into the kernel, at 1 000, 10 000 and 100 000 rules over a tenth as many destinations: every
 * destination with rules of its own, 50 profiles over all of them, and one linear chain as a script would write it.
 * Then one rule changed in each. In a namespace of its own, needs root and nft. Targets at 100 000: 2.5 s and 400 MB;
 * with profiles 0.2 s.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Rule } from '../packages/core/src/firewall/rule.ts';
import { createCompiler } from '../packages/core/src/nftables/compiler.ts';
import { kernelObstacle, TestNamespace } from '../packages/core/src/nftables/testing/kernel-table.ts';
import { ruleUuid } from '../packages/core/src/nftables/testing/random-rules.ts';

const sizes = (process.argv[2] ?? '1000,10000,100000').split(',').map(Number);
const rulesPerDestination = 10;
const profiles = 50;
const mark = '0'.repeat(16);
const textFile = join(tmpdir(), `levee-full-load-${process.pid}.nft`);

interface Load {
  readonly seconds: number;
  /** The processor's time, nft's and the kernel's for it: steadier than the clock where others work too. */
  readonly busySeconds: number;
  readonly megabytes: number;
}

interface Measured {
  readonly kind: string;
  readonly rules: number;
  readonly compileSeconds: number;
  readonly load: Load;
  readonly change: Load;
  readonly changeCompileMilliseconds: number;
}

/**
 * Half of the rules have a transport and one port, a quarter a range of ports, a quarter a source too. `variety`: how
 * many different destinations there are to tell apart.
 */
function ruleOf(index: number, variety: number): Rule {
  const destination = Math.floor(index / rulesPerDestination);
  const turn = index % rulesPerDestination;
  const seed = (destination % variety) * rulesPerDestination + turn;
  const port = 1 + ((seed * 7919) % 60000);
  const source = BigInt(0x2d000000 + ((seed * 104729) % 0x1000000));
  return {
    uuid: ruleUuid(index),
    sequence: index,
    priority: 1000,
    dst: { family: 4, value: BigInt(0x0a000000 + destination), length: 32 },
    protocol: turn % 2 === 0 ? 'tcp' : 'udp',
    action: turn % 3 === 0 ? 'accept' : 'drop',
    destinationPorts: { start: port, end: turn % 4 === 1 ? port + turn : port },
    ...(turn % 4 === 3 && { src: { family: 4, start: source, end: source } }),
    disabled: false,
  };
}

/** One chain, the destination asked by every rule. */
function linearText(count: number): string {
  const lines = ['add table inet levee', 'delete table inet levee', 'table inet levee {', 'chain linear_rules {'];
  lines.push('type filter hook forward priority 0; policy accept;');
  for (let index = 0; index < count; index += 1) {
    const { dst, protocol, destinationPorts, src, action } = ruleOf(index, count);
    const ports = `${destinationPorts?.start}-${destinationPorts?.end}`;
    const from = src ? `ip saddr ${dotted(src.start)} ` : '';
    lines.push(`${from}ip daddr ${dotted(dst.value)} ${protocol} dport ${ports} counter ${action}`);
  }
  return [...lines, '}', '}', ''].join('\n');
}

function dotted(value: bigint): string {
  return [24n, 16n, 8n, 0n].map((shift) => (value >> shift) & 255n).join('.');
}

/** nft's time from start to end, and the most memory it held. */
async function runNft(namespace: TestNamespace, text: string): Promise<Load> {
  writeFileSync(textFile, text);
  const begin = performance.now();
  const child = spawn('ip', ['netns', 'exec', namespace.name, 'nft', '-f', textFile], { stdio: 'inherit' });
  let kilobytes = 0;
  let ticks = 0;
  const watch = setInterval(() => {
    try {
      const status = readFileSync(`/proc/${child.pid}/status`, 'utf8');
      kilobytes = Math.max(kilobytes, Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? 0));
      // proc(5): utime and stime are the 14th and 15th field, in hundredths; the name before them may hold spaces.
      const fields = readFileSync(`/proc/${child.pid}/stat`, 'utf8').replace(/.*\) /, '').split(' ');
      ticks = Math.max(ticks, Number(fields[11]) + Number(fields[12]));
    } catch {
      // Ended between two looks.
    }
  }, 5);
  const [code] = await once(child, 'exit');
  clearInterval(watch);
  if (code !== 0) throw new Error(`nft ended with ${code}`);
  return { seconds: (performance.now() - begin) / 1000, busySeconds: ticks / 100, megabytes: kilobytes / 1024 };
}

async function measureCompiled(namespace: TestNamespace, kind: string, rules: readonly Rule[]): Promise<Measured> {
  const compiler = createCompiler();
  let begin = performance.now();
  const plan = compiler.replace(rules, mark);
  plan.commit();
  const compileSeconds = (performance.now() - begin) / 1000;
  const load = await runNft(namespace, plan.text);
  const last = rules.at(-1);
  if (last === undefined) throw new Error('no rules');
  begin = performance.now();
  const change = compiler.change({ upsert: [{ ...last, action: 'continue' }], remove: [] }, mark);
  const changeCompileMilliseconds = performance.now() - begin;
  return {
    kind,
    rules: rules.length,
    compileSeconds,
    load,
    change: await runNft(namespace, change.text),
    changeCompileMilliseconds,
  };
}

async function measureLinear(namespace: TestNamespace, count: number): Promise<Measured> {
  const load = await runNft(namespace, linearText(count));
  const change = await runNft(
    namespace,
    'add rule inet levee linear_rules ip daddr 10.0.0.1 tcp dport 9 counter drop\n',
  );
  return { kind: 'linear chain', rules: count, compileSeconds: 0, load, change, changeCompileMilliseconds: 0 };
}

const obstacle = kernelObstacle();
if (obstacle !== undefined) {
  console.error(`full-load ${obstacle}`);
  process.exit(1);
}

const measured: Measured[] = [];
try {
  for (const size of sizes) {
    // A namespace each: taking a large table away would otherwise be part of the next load.
    for (const [kind, variety] of [
      ['own rules', size],
      [`${profiles} profiles`, profiles],
    ] as const) {
      using namespace = new TestNamespace();
      const rules = Array.from({ length: size }, (_, index) => ruleOf(index, variety));
      measured.push(await measureCompiled(namespace, kind, rules));
    }
    using namespace = new TestNamespace();
    measured.push(await measureLinear(namespace, size));
  }
} finally {
  rmSync(textFile, { force: true });
}

console.table(
  measured.map(({ kind, rules, compileSeconds, load, change, changeCompileMilliseconds }) => ({
    rules,
    kind,
    'compile s': compileSeconds.toFixed(3),
    'load s': load.seconds.toFixed(3),
    'load busy s': load.busySeconds.toFixed(2),
    'load MB': Math.round(load.megabytes),
    'change: compile ms': changeCompileMilliseconds.toFixed(2),
    'change: nft ms': Math.round(change.seconds * 1000),
  })),
);
for (const kind of new Set(measured.map((one) => one.kind))) {
  const series = measured.filter((one) => one.kind === kind);
  const [first, last] = [series.at(-2), series.at(-1)];
  if (first === undefined || last === undefined) continue;
  const exponent = Math.log(last.load.seconds / first.load.seconds) / Math.log(last.rules / first.rules);
  console.log(`exponent ${exponent.toFixed(2)}: ${kind}, load from ${first.rules} to ${last.rules} rules`);
}
for (const size of sizes) {
  const [own, shared, linear] = measured.filter((one) => one.rules === size);
  if (own === undefined || shared === undefined || linear === undefined) continue;
  const ratio = (one: Measured) => (one.load.seconds / linear.load.seconds).toFixed(2);
  console.log(`ratio ${ratio(own)} of a linear chain's load time at ${size} rules; with profiles ${ratio(shared)}`);
}
