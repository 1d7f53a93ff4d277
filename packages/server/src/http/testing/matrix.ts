/**
 * What the matrix of roles and ownership says of an operation, and the verdicts that many operations share. The rows
 * stand in one file an area (matrix/). Test code only.
 */
import type { ApiFixture, Reply } from './api-fixture.ts';
import type { HolderName, World } from './world.ts';

export type CallerName = 'operator' | 'provider' | 'user';
export type Verdict = 200 | 403 | 404;

export interface Row {
  /** What a caller whose role may call the operation gets, by whose object or address it names. */
  readonly expect: (caller: CallerName, target: HolderName) => Verdict;
  readonly send: (key: string, target: HolderName) => Promise<Reply>;
  /** What the operation needs in its query, when it is asked about an object that never was. */
  readonly query?: string;
  /** More that must hold of a good answer. */
  readonly check?: (reply: Reply, caller: CallerName, target: HolderName) => void;
}

export const targets: readonly HolderName[] = ['provider', 'user', 'sibling', 'stranger', 'strangerProvider'];
export const ofProvider = new Set<HolderName>(['provider', 'user', 'sibling']);

export interface MatrixKit {
  readonly api: ApiFixture;
  readonly world: World;
  /** Another number at each call. */
  readonly next: () => number;
}

export type Rows = Readonly<Record<string, Row>>;

/** Objects: one's own, and for a provider those of its users. The others do not exist. */
export const ownOrUsers =
  (otherwise: Verdict) =>
  (caller: CallerName, target: HolderName): Verdict =>
    caller === target || (caller === 'provider' && ofProvider.has(target)) ? 200 : otherwise;
export const ownOnly =
  (otherwise: Verdict) =>
  (caller: CallerName, target: HolderName): Verdict =>
    caller === target ? 200 : otherwise;
export const anyAccount = (caller: CallerName, target: HolderName): Verdict =>
  caller === 'operator' ? 200 : ownOrUsers(404)(caller, target);
export const everyone = (): Verdict => 200;

export function ownersIn(reply: Reply): string[] {
  return [...new Set<string>(reply.body.map((rule: { owner_uuid: string }) => rule.owner_uuid))];
}
