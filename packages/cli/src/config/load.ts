/**
 * Owns how the sources of configuration become one value a setting: command line over environment over levee.toml over
 * default, all problems told at once. Must never show a secret's value, also not in a problem.
 */
import { readFileSync } from 'node:fs';
import { parse as parseToml, TomlError } from 'smol-toml';
import { type Config, type Reader, type Setting, type SettingName, settingEntries } from './settings.ts';
import { nearest } from './suggest.ts';
import type { Parsed } from './value-types.ts';

export type Source = 'command line' | 'environment' | 'file' | 'default';

export interface Sources {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Given on the command line: setting → text. */
  readonly options?: Readonly<Partial<Record<SettingName, string>>>;
  /** `undefined`: `levee.toml` in the working directory, if there is one. `null`: no file is looked at. */
  readonly file?: string | null | undefined;
}

export interface Loaded {
  readonly config: Config;
  readonly sources: Readonly<Record<SettingName, Source>>;
  /** Path of the levee.toml that was read. */
  readonly file: string | undefined;
}

export type LoadResult =
  | { readonly ok: true; readonly loaded: Loaded }
  | { readonly ok: false; readonly problems: readonly string[] };

/** What a source says about settings, by the name it uses for them, with the values still unread. */
interface Found {
  readonly source: Source;
  readonly values: Map<SettingName, { name: string; parse: (setting: Setting<unknown>) => Parsed<unknown> }>;
}

/** Names that Levee's own bootstrap, tests and benchmarks use; no setting begins so. */
const foreign = /^LEVEE_(?:TEST|BENCH|CI)_/;

export function loadConfig(sources: Sources): LoadResult {
  const problems: string[] = [];
  const file = sources.file === null ? undefined : readConfigFile(sources, problems);
  const layers = [
    fromOptions(sources.options ?? {}),
    fromEnvironment(sources.environment, problems),
    fromFile(file, problems),
  ];
  const config: Partial<Record<SettingName, unknown>> = {};
  const origin: Partial<Record<SettingName, Source>> = {};
  for (const [name, setting] of settingEntries) {
    const layer = layers.find((candidate) => candidate.values.has(name));
    const found = layer?.values.get(name);
    config[name] = setting.default;
    origin[name] = layer?.source ?? 'default';
    if (found === undefined) continue;
    const parsed = found.parse(setting);
    if (parsed.ok) config[name] = parsed.value;
    else problems.push(`${found.name}: ${parsed.message}`);
  }
  if (problems.length > 0) return { ok: false, problems };
  const loaded = { config: config as Config, sources: origin as Loaded['sources'], file: file?.path };
  return { ok: true, loaded };
}

function fromOptions(options: Readonly<Partial<Record<SettingName, string>>>): Found {
  const values: Found['values'] = new Map();
  for (const [name, given] of Object.entries(options) as [SettingName, string | undefined][]) {
    if (given === undefined) continue;
    values.set(name, { name: `--${optionName(name)}`, parse: (setting) => readText(setting, given) });
  }
  return { source: 'command line', values };
}

/** `edgeNetns` → `edge-netns`, as the TOML key has it. */
export function optionName(name: SettingName): string {
  const toml = settingEntries.find(([key]) => key === name)?.[1].toml ?? name;
  return toml.replace(/[._]/g, '-');
}

function fromEnvironment(environment: Sources['environment'], problems: string[]): Found {
  const values: Found['values'] = new Map();
  const known = new Set(['LEVEE_CONFIG']);
  for (const [name, setting] of settingEntries) {
    known.add(setting.environment);
    // Compose files and unit files leave variables empty to mean "not set".
    const direct = environment[setting.environment] || undefined;
    const fileName = `${setting.environment}_FILE`;
    if (setting.secret) known.add(fileName);
    const file = setting.secret ? environment[fileName] || undefined : undefined;
    if (direct !== undefined && file !== undefined)
      problems.push(`${setting.environment} and ${fileName} are both set`);
    else if (direct !== undefined) {
      values.set(name, { name: setting.environment, parse: () => readText(setting, direct) });
    } else if (file !== undefined) values.set(name, { name: fileName, parse: () => readSecretFile(setting, file) });
  }
  for (const name of Object.keys(environment)) {
    if (!name.startsWith('LEVEE_') || foreign.test(name)) continue;
    if (!known.has(name)) problems.push(`${name}: there is no such setting${didYouMean(name, known)}`);
  }
  return { source: 'environment', values };
}

function fromFile(file: { path: string; content: Record<string, unknown> } | undefined, problems: string[]): Found {
  const values: Found['values'] = new Map();
  if (file === undefined) return { source: 'file', values };
  const given = flatten(file.content);
  const known = new Set<string>();
  for (const [name, setting] of settingEntries) {
    const fileKey = `${setting.toml}_file`;
    known.add(setting.toml);
    if (setting.secret) known.add(fileKey);
    const label = (key: string) => `${file.path}: ${key}`;
    const secretFile = setting.secret ? given.get(fileKey) : undefined;
    if (given.has(setting.toml) && secretFile !== undefined) {
      problems.push(`${label(setting.toml)} and ${fileKey} are both set`);
    } else if (given.has(setting.toml)) {
      const value = given.get(setting.toml);
      values.set(name, { name: label(setting.toml), parse: () => readToml(setting, value) });
    } else if (typeof secretFile === 'string') {
      values.set(name, { name: label(fileKey), parse: () => readSecretFile(setting, secretFile) });
    } else if (secretFile !== undefined) problems.push(`${label(fileKey)}: expected a path`);
  }
  for (const key of given.keys()) {
    if (!known.has(key)) problems.push(`${file.path}: ${key}: there is no such setting${didYouMean(key, known)}`);
  }
  return { source: 'file', values };
}

function readConfigFile(
  sources: Sources,
  problems: string[],
): { path: string; content: Record<string, unknown> } | undefined {
  const named = sources.file ?? (sources.environment.LEVEE_CONFIG || undefined);
  const path = named ?? 'levee.toml';
  try {
    return { path, content: parseToml(readFileSync(path, 'utf8')) };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (error instanceof TomlError) {
      // The message's further lines quote the source, which may hold a secret.
      problems.push(`${path}:${error.line}:${error.column}: ${error.message.split('\n')[0]}`);
    } else if (code !== 'ENOENT' || named !== undefined) problems.push(`${path}: cannot be read (${code})`);
    return undefined;
  }
}

/** `{edge: {netns: 'x'}}` → `edge.netns`. An array or a date is a value, never a table. */
function flatten(table: Record<string, unknown>, prefix = '', into = new Map<string, unknown>()): Map<string, unknown> {
  for (const [key, value] of Object.entries(table)) {
    const isTable = typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date);
    if (isTable) flatten(value as Record<string, unknown>, `${prefix}${key}.`, into);
    else into.set(`${prefix}${key}`, value);
  }
  return into;
}

function readText(setting: Setting<unknown>, given: string): Parsed<unknown> {
  if (given === '') return { ok: false, message: 'is empty' };
  const parsed = setting.type.parse(given);
  if (parsed.ok || setting.secret) return parsed;
  return { ok: false, message: `${parsed.message}; received ${JSON.stringify(given)}` };
}

function readToml(setting: Setting<unknown>, value: unknown): Parsed<unknown> {
  if (setting.type.fromToml !== undefined) return setting.type.fromToml(value);
  return typeof value === 'string' ? readText(setting, value) : { ok: false, message: 'expected a string' };
}

function readSecretFile(setting: Setting<unknown>, path: string): Parsed<unknown> {
  try {
    return readText(setting, readFileSync(path, 'utf8').replace(/\r?\n$/, ''));
  } catch (error) {
    return { ok: false, message: `${path} cannot be read (${(error as NodeJS.ErrnoException).code})` };
  }
}

function didYouMean(given: string, known: Iterable<string>): string {
  const name = nearest(given, known);
  return name === undefined ? '' : `; did you mean ${name}?`;
}

/** What this program reads, as environment variables: how a process hands it to a child. Defaults are left out. */
export function toEnvironment(loaded: Loaded, reader: Reader): Record<string, string> {
  const environment: Record<string, string> = {};
  for (const [name, setting] of settingEntries) {
    const value = loaded.config[name];
    if (!setting.readBy.includes(reader) || loaded.sources[name] === 'default' || value === undefined) continue;
    environment[setting.environment] = setting.type.write(value);
  }
  return environment;
}
