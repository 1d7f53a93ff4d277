/**
 * What the control plane and `levee exabgp` say to each other, a line of JSON each, and how a line is read. Never believes a
 * line: anything may have been written into the socket.
 */

/** One route: undefined `announce` withdraws it. */
export interface RelayCommand {
  readonly key: string;
  readonly content: string;
  readonly announce?: string | undefined;
  readonly withdraw: string;
}

export type ToRelay = { readonly id: number; readonly commands: readonly RelayCommand[] };

export type RememberedRoute = readonly [key: string, content: string, withdraw: string];

export type FromRelay =
  /** All that it remembers, in as many parts as it takes; only the last one has no `more`. */
  | { readonly type: 'hello'; readonly routes: readonly RememberedRoute[]; readonly more: boolean }
  | { readonly type: 'done'; readonly id: number; readonly refused: readonly string[] };

/** Routes a line: 500 of the longest take some 2 million characters, half of what `readLines` lets through. */
export const routesALine = 500;

/** Undefined: it is none. */
export function readFromRelay(line: string): FromRelay | undefined {
  const read = objectOf(line);
  if (read?.type === 'done' && typeof read.id === 'number' && areTexts(read.refused)) {
    return { type: 'done', id: read.id, refused: read.refused };
  }
  const { routes, more } = read ?? {};
  if (read?.type !== 'hello' || typeof more !== 'boolean' || !Array.isArray(routes)) return undefined;
  if (!routes.every((each) => areTexts(each) && each.length === 3)) return undefined;
  return { type: 'hello', routes, more };
}

/** Undefined: it is none. */
export function readToRelay(line: string): ToRelay | undefined {
  const { id, commands } = objectOf(line) ?? {};
  if (typeof id !== 'number' || !Array.isArray(commands) || !commands.every(isCommand)) return undefined;
  return { id, commands };
}

/** One command is one line to ExaBGP. */
function isCommand(value: unknown): value is RelayCommand {
  if (typeof value !== 'object' || value === null) return false;
  const { key, content, announce, withdraw } = value as Partial<Record<keyof RelayCommand, unknown>>;
  const texts = [key, content, withdraw, announce ?? ''];
  return areTexts(texts) && texts.every((text) => !/[\r\n]/.test(text));
}

function areTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((each) => typeof each === 'string');
}

function objectOf(line: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const read: unknown = JSON.parse(line);
    return typeof read === 'object' && read !== null ? (read as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}
