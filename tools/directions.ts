/**
 * Owns the rule which way dependencies run, and finds what breaks it. Pure: sources and manifests in, violations out.
 * Must never be widened to let a violation through; the plan and the decision pages come first.
 */
import { posix } from 'node:path';
import { codeOnly, type Import, readImports } from './imports.ts';

export interface Violation {
  readonly file: string;
  readonly line: number;
  readonly message: string;
}

/** Paths are relative to the repository, with forward slashes. */
export interface Tree {
  /** path → source, of every TypeScript file. */
  readonly sources: ReadonlyMap<string, string>;
  /** `packages/<name>` or '' for the root → names of npm packages that it declares. */
  readonly declared: ReadonlyMap<string, ReadonlySet<string>>;
}

/** Which packages a package's code may import, besides itself. */
const packages: Record<string, readonly string[]> = {
  contract: [],
  core: ['contract'],
  server: ['contract', 'core'],
  follow: [],
  edge: ['contract', 'core', 'follow'],
  detector: ['contract', 'core', 'follow'],
  lab: [],
  cli: ['contract', 'core', 'server', 'edge', 'detector', 'lab'],
};

/** Inside server: folder → folders it may import, besides itself. `.`: the files beside `main.ts`, which wire. */
const serverFolders: Record<string, readonly string[]> = {
  http: ['commands', 'store', 'agents', 'events'],
  commands: ['store'],
  agents: ['machines', 'store'],
  // What routes for routers' agents and for detectors have in common.
  machines: ['store'],
  // What detectors tell becomes attacks and measures: a second way in, beside http.
  detectors: ['commands', 'machines', 'store'],
  events: ['store', 'agents'],
  // Sinks of the change log that are no routers: DNS servers, webhooks, BGP speakers.
  backends: ['store', 'events'],
  // What is due without anybody asking may be a command's to do: measures looked at again.
  sweep: ['commands', 'store'],
  store: [],
  '.': ['http', 'commands', 'agents', 'detectors', 'events', 'backends', 'sweep', 'store'],
};

/** Modules of Node that compute and touch nothing; null: all of it, else the names that may be taken. */
const pureModules: Record<string, readonly string[] | null> = {
  'node:assert': null,
  'node:assert/strict': null,
  'node:buffer': null,
  'node:crypto': ['createHash', 'hash', 'createHmac', 'timingSafeEqual'],
  'node:net': ['isIP', 'isIPv4', 'isIPv6', 'BlockList', 'SocketAddress'],
  'node:url': ['domainToASCII'],
  'node:util': null,
};

const impure: readonly [RegExp, string][] = [
  [/\basync\b|\bawait\b|\bPromise\b/, 'asynchronous code'],
  [/\bDate\.now\b|\bnew Date\(\s*\)|\bDate\(\s*\)|\bperformance\b|\bhrtime\b/, 'a clock'],
  [/\bMath\.random\b|\bgetRandomValues\b|\brandom(?:UUID|Bytes|Int)\b/, 'randomness'],
  [/\bset(?:Timeout|Interval|Immediate)\b|\bqueueMicrotask\b/, 'a timer'],
  [/\bprocess\.|\bconsole\.|\bfetch\(/, 'input or output'],
];

export function findViolations(tree: Tree): Violation[] {
  const violations: Violation[] = [];
  const graph = new Map<string, string[]>();
  for (const [file, source] of tree.sources) {
    const imports = readImports(source);
    const targets: string[] = [];
    for (const each of imports) {
      const target = resolveTarget(file, each.specifier);
      const message = target === undefined ? judgeForeign(file, each, tree) : judge(file, target, tree);
      if (message !== undefined) violations.push({ file, line: each.line, message });
      if (target !== undefined && !each.typeOnly) targets.push(target);
    }
    graph.set(file, targets);
    if (packageOf(file) === 'core' && !isTest(file)) violations.push(...findImpurities(file, source));
  }
  violations.push(...findCycles(graph));
  return violations;
}

/** The repository's file that a specifier means; undefined for npm packages and Node's own modules. */
function resolveTarget(file: string, specifier: string): string | undefined {
  if (specifier.startsWith('.')) return posix.join(posix.dirname(file), specifier);
  const match = /^@levee\/([^/]+)\/(.+)$/.exec(specifier);
  return match === null ? undefined : `packages/${match[1]}/src/${match[2]}`;
}

function packageOf(file: string): string | undefined {
  return /^packages\/([^/]+)\//.exec(file)?.[1];
}

/** Tests and what only they use may take more: their package's level still binds them. */
function isTest(file: string): boolean {
  return /\.(?:test|long)\.ts$|\/testing\//.test(file);
}

function judge(file: string, target: string, tree: Tree): string | undefined {
  if (!tree.sources.has(target) && !target.endsWith('.json')) return `imports ${target}, which does not exist`;
  const from = packageOf(file);
  const to = packageOf(target);
  if (from === undefined) return undefined; // e2e/, bench/ and tools/ look at the whole
  if (to === undefined) return `a package imports ${target}, outside the packages`;
  if (from !== to) {
    const allowed = packages[from];
    if (allowed === undefined) return `package ${from} has no place in the directions yet`;
    if (!allowed.includes(to)) return `${from} must not import ${to} (${target})`;
    if (!tree.declared.get(`packages/${from}`)?.has(`@levee/${to}`))
      return `package.json does not declare @levee/${to}`;
    return undefined;
  }
  return from === 'server' ? judgeInsideServer(file, target) : undefined;
}

function judgeInsideServer(file: string, target: string): string | undefined {
  const folder = (path: string) => {
    const [first = '', ...rest] = path.slice('packages/server/src/'.length).split('/');
    return rest.length === 0 ? '.' : first;
  };
  const from = folder(file);
  const to = folder(target);
  if (from === to) return undefined;
  // A suite of http's own starts the whole server; nothing that runs does.
  if (isTest(file) && from === 'http') return undefined;
  const allowed = serverFolders[from];
  if (allowed === undefined) return `server/${from} has no place in the directions yet`;
  return allowed.includes(to) ? undefined : `server/${from} must not import server/${to} (${target})`;
}

function judgeForeign(file: string, { specifier, names }: Import, tree: Tree): string | undefined {
  const from = packageOf(file);
  if (specifier.startsWith('node:')) {
    if (from !== 'core' && from !== 'contract') return undefined;
    if (isTest(file)) return undefined;
    const allowed = pureModules[specifier];
    if (allowed === null) return undefined;
    const bad = allowed === undefined ? ['*'] : names.filter((name) => !allowed.includes(name));
    if (bad.length === 0 && names.length > 0) return undefined;
    return `${from} is pure and must not take ${bad.join(', ') || '*'} from ${specifier}`;
  }
  const name = specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/');
  const own = tree.declared.get(from === undefined ? '' : `packages/${from}`);
  if (own?.has(name)) return undefined;
  if ((isTest(file) || from === undefined) && isDeclaredAnywhere(name, tree)) return undefined;
  return `package.json does not declare ${name}`;
}

function isDeclaredAnywhere(name: string, tree: Tree): boolean {
  return [...tree.declared.values()].some((names) => names.has(name));
}

function findImpurities(file: string, source: string): Violation[] {
  const found: Violation[] = [];
  for (const [index, text] of codeOnly(source).split('\n').entries()) {
    for (const [pattern, what] of impure) {
      if (pattern.test(text)) found.push({ file, line: index + 1, message: `core is pure and must not use ${what}` });
    }
  }
  return found;
}

/** Each cycle of run-time imports once, told from its alphabetically first file. */
function findCycles(graph: ReadonlyMap<string, readonly string[]>): Violation[] {
  const found = new Map<string, Violation>();
  const done = new Set<string>();
  const path: string[] = [];
  const visit = (file: string): void => {
    const at = path.indexOf(file);
    if (at >= 0) {
      const cycle = path.slice(at);
      const first = cycle.indexOf([...cycle].sort()[0] ?? file);
      const told = [...cycle.slice(first), ...cycle.slice(0, first)];
      const message = `imports itself in a circle: ${[...told, told[0]].join(' → ')}`;
      found.set(message, { file: told[0] ?? file, line: 1, message });
      return;
    }
    if (done.has(file)) return;
    path.push(file);
    for (const target of graph.get(file) ?? []) visit(target);
    path.pop();
    done.add(file);
  };
  for (const file of graph.keys()) visit(file);
  return [...found.values()];
}
