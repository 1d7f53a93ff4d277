/**
 * Takes addresses away from their holder, with all consequences, in one transaction: whatever stands on an address that
 * goes is marked for deletion, a tunnel keeps its other subnets, and what lies beside moves to the piece that is left.
 * The one place that knows what losing addresses means for each kind of object.
 *
 * The holder's subnet rows are locked first. An object being created holds a share of its row, by its foreign key: so it
 * is either seen here or refused there, and none is left outside.
 *
 * Attacks and a user's flowrules stay: they are history, and what a provider's network is protected by. A flowrule goes
 * when the provider loses the prefix.
 */
import { type Prefix, prefixesOverlap } from '@levee/core/net/prefix.ts';
import { formatPrefix, prefixFromTrusted } from '@levee/core/net/prefix-text.ts';
import { subtract } from '@levee/core/net/subtract.ts';
import { markingText } from '../store/stored-kinds.ts';
import { type AuditEntry, objectEntry } from './audit.ts';
import type { Executor, Statement } from './executor.ts';
import { withdrawSpace as withdrawUndo } from './pending-undo.ts';
import { type ChangePlace, type StoredRow, storedColumns } from './stored-row.ts';
import { withdrawTunnels } from './withdraw-tunnels.ts';

export interface SpaceHolder {
  readonly accountUuid: string;
  readonly providerUuid: string;
  readonly role: 'provider' | 'user';
}

export interface HeldSubnet {
  readonly prefix: Prefix;
  /** The provider's prefix that a user's subnet lies in. */
  readonly providerSubnet: string | null;
}

/** How many objects were marked, by kind as answers call them; measures against attacks are nobody's, and go uncounted. */
export type RemovedCounts = Readonly<Record<'firewall_rules' | 'filters' | 'tunnels' | 'rdns' | 'flowrules', number>>;

export interface WithdrawnSpace {
  readonly removed: RemovedCounts;
  /** That lost some of their subnets and go on with the others. */
  readonly tunnelsChanged: number;
  readonly audit: readonly AuditEntry[];
  /** The last of the changes; undefined when no object was concerned. */
  readonly change: ChangePlace | undefined;
}

/** A kind of object that stands on one destination, and by which columns. */
interface PlacedKind {
  readonly table: string;
  readonly destination: string;
  /** By which the row holds the grant, and whose grant it is: a provider's matters to providers alone. */
  readonly grant: string;
  readonly holder: 'owner_uuid' | 'provider_uuid';
  readonly constraint: string;
}

interface MarkedKind extends PlacedKind {
  readonly kind: AuditEntry['kind'];
  readonly counted: keyof RemovedCounts;
  /** Marks what `where` selects and leaves `marked`, as store/stored-kinds.ts has it. */
  readonly marking: (where: string) => string;
  /** Of the rows as they were before: `uuid`, `owner_uuid`, `provider_uuid` and what `entry` needs. */
  readonly columns: string;
  readonly entry: (row: MarkedRow) => AuditEntry;
  /** Absent: all of them. */
  readonly isCounted?: (row: MarkedRow) => boolean;
}

type MarkedRow = StoredRow & { readonly marked_position: number; readonly marked_xid: number } & Readonly<
    Record<string, unknown>
  >;

const owned = { grant: 'subnet', holder: 'owner_uuid' } as const;

/** The records' rows differ from those of other objects: they have no fields, and go by their own reconciler. */
const markRdns = (where: string) => `marked as (
    update rdns_record r set deletion_marked_at = date_trunc('milliseconds', now()), subnet = null, failure = null,
      updated_at = greatest(r.updated_at, date_trunc('milliseconds', now())),
      change_xid = pg_current_xact_id(), change_position = nextval('change_position')
    where (${where}) and r.deletion_marked_at is null
    returning r.uuid, r.change_xid, r.change_position
  ), logged as (
    insert into change (position, kind, object_uuid) select change_position, 'rdns', uuid from marked
  )`;

const stored = (kind: 'firewall_rule' | 'filter' | 'flowrule') => ({
  kind,
  table: kind,
  destination: 'dst',
  marking: (where: string) => markingText(kind, where),
  columns: storedColumns,
  entry: (row: MarkedRow) => objectEntry(kind, row, undefined),
});

const markedKinds: readonly MarkedKind[] = [
  {
    ...stored('firewall_rule'),
    ...owned,
    constraint: 'firewall_rule_subnet',
    counted: 'firewall_rules',
    columns: `${storedColumns}, r.origin`,
    isCounted: ({ origin }) => origin !== 'attack',
  },
  { ...stored('filter'), ...owned, constraint: 'filter_subnet', counted: 'filters' },
  {
    kind: 'rdns',
    table: 'rdns_record',
    destination: 'address',
    ...owned,
    constraint: 'rdns_record_subnet',
    counted: 'rdns',
    marking: markRdns,
    columns: `r.uuid::text as uuid, r.owner_uuid::text as owner_uuid, r.provider_uuid::text as provider_uuid,
      host(r.address) as ips, r.record`,
    entry: ({ uuid, owner_uuid, provider_uuid, ips, record }) => ({
      kind: 'rdns',
      uuid,
      ownerUuid: owner_uuid,
      providerUuid: provider_uuid,
      before: { ips, record },
    }),
  },
  {
    ...stored('flowrule'),
    grant: 'prefix',
    holder: 'provider_uuid',
    constraint: 'flowrule_prefix',
    counted: 'flowrules',
  },
];

/** What else hangs on a grant and moves with it. */
const movedKinds: readonly PlacedKind[] = [
  ...markedKinds,
  { table: 'tunnel_subnet', destination: 'routed', ...owned, constraint: 'tunnel_subnet_held' },
  {
    table: 'subnet',
    destination: 'subnet',
    grant: 'provider_subnet',
    holder: 'provider_uuid',
    constraint: 'subnet_provider_holds',
  },
];

const markStatements: ReadonlyMap<MarkedKind, Statement> = new Map(
  markedKinds.map((each) => [
    each,
    {
      name: `withdraw_${each.table}`,
      text: `with ${each.marking(
        `r.${each.holder} = $1 and r.${each.grant} is not null and r.${each.destination} && any($2::cidr[])`,
      )}
      select ${each.columns}, m.change_xid::text::int8 as marked_xid, m.change_position as marked_position
      from marked m join ${each.table} r on r.uuid = m.uuid`,
    },
  ]),
);

const moveStatements = movedKinds.map(({ table, destination, grant, holder }) => ({
  ofProvider: holder === 'provider_uuid',
  name: `withdraw_move_${table}`,
  text: `update ${table} r set ${grant} = rest.subnet from unnest($2::cidr[]) rest (subnet)
    where r.${holder} = $1 and r.${grant} >> rest.subnet and r.${destination} <<= rest.subnet`,
}));

const deferStatement = {
  name: 'withdraw_defer',
  text: `set constraints ${movedKinds.map(({ constraint }) => constraint).join(', ')} deferred`,
};

const lockStatement = {
  name: 'withdraw_lock',
  text: 'select subnet::text, provider_subnet::text from subnet where account_uuid = $1 order by subnet for update',
};

/** Locks what the account holds, in address order. */
export async function lockSpace(executor: Executor, accountUuid: string): Promise<HeldSubnet[]> {
  const rows = await executor.rows<{ subnet: string; provider_subnet: string | null }>(lockStatement, [accountUuid]);
  return rows.map((row) => ({ prefix: prefixFromTrusted(row.subnet), providerSubnet: row.provider_subnet }));
}

const dropStatement = {
  name: 'withdraw_drop',
  text: 'delete from subnet where account_uuid = $1 and subnet = any($2::cidr[])',
};

const remainderStatement = {
  name: 'withdraw_remainder',
  text: `insert into subnet (account_uuid, subnet, role, provider_uuid, provider_subnet)
    select $1, rest.subnet, $2, $3, rest.provider_subnet
    from unnest($4::cidr[], $5::cidr[]) rest (subnet, provider_subnet)`,
};

/** `held`: what `lockSpace` gave in this transaction. `taken` do not overlap each other. */
export async function withdrawSpace(
  executor: Executor,
  holder: SpaceHolder,
  held: readonly HeldSubnet[],
  taken: readonly Prefix[],
): Promise<WithdrawnSpace> {
  const { accountUuid, role } = holder;
  const texts = taken.map(formatPrefix);
  const removed = { firewall_rules: 0, filters: 0, tunnels: 0, rdns: 0, flowrules: 0 };
  const audit: AuditEntry[] = [];
  const places: ChangePlace[] = [];
  for (const [kind, statement] of markStatements) {
    if (kind.holder === 'provider_uuid' && role !== 'provider') continue;
    const rows = await executor.rows<MarkedRow>(statement, [accountUuid, texts]);
    removed[kind.counted] = rows.filter(kind.isCounted ?? (() => true)).length;
    audit.push(...rows.map(kind.entry));
    places.push(...rows.map((row) => ({ change_xid: row.marked_xid, change_position: row.marked_position })));
  }
  const tunnels = await withdrawTunnels(executor, accountUuid, taken);
  removed.tunnels = tunnels.removed;
  await withdrawUndo(executor, accountUuid, texts);
  await replaceGrants(executor, holder, held, taken);
  return {
    removed,
    tunnelsChanged: tunnels.changed,
    audit: [...audit, ...tunnels.audit],
    change: [...places, ...tunnels.places].reduce<ChangePlace | undefined>(
      (last, place) => (last === undefined || place.change_position > last.change_position ? place : last),
      undefined,
    ),
  };
}

/** Nothing stands on `taken` any more: the grants that it touches go, what is left of them is granted anew. */
async function replaceGrants(
  executor: Executor,
  { accountUuid, providerUuid, role }: SpaceHolder,
  held: readonly HeldSubnet[],
  taken: readonly Prefix[],
): Promise<void> {
  const touched = held.filter(({ prefix }) => taken.some((each) => prefixesOverlap(each, prefix)));
  const rest = touched.flatMap(({ prefix, providerSubnet }) =>
    subtract(prefix, taken).map((piece) => ({ piece: formatPrefix(piece), providerSubnet })),
  );
  await executor.rows(deferStatement, []);
  await executor.rows(dropStatement, [accountUuid, touched.map(({ prefix }) => formatPrefix(prefix))]);
  if (rest.length === 0) return;
  const pieces = rest.map(({ piece }) => piece);
  const within = rest.map(({ providerSubnet }) => providerSubnet);
  await executor.rows(remainderStatement, [accountUuid, role, providerUuid, pieces, within]);
  for (const statement of moveStatements) {
    if (statement.ofProvider && role !== 'provider') continue;
    await executor.rows(statement, [accountUuid, pieces]);
  }
}
