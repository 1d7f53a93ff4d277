/** From the operator's requests about reverse zones to commands, and from rows to answers. Decides nothing itself. */
import type { Problem } from '@levee/contract/errors.ts';
import { problem } from '@levee/core/problem.ts';
import { parseReverseZone, type ReverseZone } from '@levee/core/rdns/reverse-name.ts';
import { ZoneIndex } from '@levee/core/rdns/zone-index.ts';
import {
  judgeZoneChange,
  parseZoneSettings,
  type ZoneDriverSettings,
  type ZoneFields,
} from '@levee/core/rdns/zone-settings.ts';
import type pg from 'pg';
import type { AuditEntry } from '../../commands/audit.ts';
import { type Executor, executorOf } from '../../commands/executor.ts';
import { refuse } from '../../commands/outcome.ts';
import { changeZone, countZones, createZone, deleteZone, isSingleName, singleName } from '../../commands/rdns-zone.ts';
import type { KnownZone } from '../../commands/read-rdns.ts';
import type { Cursor } from '../../store/cursor.ts';
import { newUuid } from '../../store/new-uuid.ts';
import { type Call, type Handler, isSound, judgedBy, membersOf, type Wrote } from '../call.ts';
import { settingsJson, type ZoneSurroundings, zoneJson } from '../rdns-answer.ts';
import { isUuid } from '../uuid-text.ts';

/** Of the embedded DNS server of this replica; none where it serves no such zone. */
export type SecondariesOf = ZoneSurroundings['secondaries'];

export interface RdnsZoneServices {
  readonly pool: pg.Pool;
  readonly secondaries: SecondariesOf;
}

interface JudgedZone {
  readonly zone: ReverseZone;
  readonly settings: ZoneDriverSettings;
}

interface ZoneReading {
  readonly uuid: string;
  readonly text: (message?: string) => string;
}

/** The log has something new: that it is woken is all that matters, nobody waits for the place. */
const anyChange: Cursor = { xid: 0, position: 0 };

export function rdnsZoneHandlers({ pool, secondaries }: RdnsZoneServices): Record<string, Handler> {
  /** All zones as they are answered: what one says depends on the others. */
  async function readZones(executor: Executor): Promise<readonly ZoneReading[]> {
    const counted = await countZones(executor);
    const around = { zones: new ZoneIndex(counted.map(({ zone }) => zone)), secondaries };
    return counted.map((each) => ({
      uuid: each.zone.row.uuid,
      text: (message) => JSON.stringify(zoneJson(each, around, message)),
    }));
  }

  async function written(executor: Executor, zone: KnownZone, audit: AuditEntry[], message?: string): Promise<Wrote> {
    const stored = (await readZones(executor)).find(({ uuid }) => uuid === zone.row.uuid);
    if (stored === undefined) throw new Error('a zone that was stored is not there');
    return { ok: true, value: { change: anyChange, render: () => stored.text(message), audit } };
  }

  return {
    createRdnsZone: {
      write: {
        judge: judgeZone,
        async run(call, executor, { zone, settings }: JudgedZone) {
          const { driver } = call.body as ZoneFields;
          const outcome = await createZone(executor, { uuid: newUuid(), zone, driver, settings });
          if (!outcome.ok) return outcome;
          const audit = [entry(outcome.value, undefined, audited(outcome.value))];
          return written(executor, outcome.value, audit);
        },
      },
    },
    listRdnsZones: {
      async read() {
        const zones = await readZones(executorOf(pool));
        return { ok: true, answer: { body: `[${zones.map(({ text }) => text()).join()}]` } };
      },
    },
    readRdnsZone: {
      async read(call) {
        const uuid = uuidOf(call);
        const zones = uuid === undefined ? [] : await readZones(executorOf(pool));
        const found = zones.find((zone) => zone.uuid === uuid);
        return found === undefined ? refuse('not_found') : { ok: true, answer: { body: found.text() } };
      },
    },
    changeRdnsZone: {
      write: {
        judge: (call, found) => judgedBy(judgeZoneChange(soundFields(call, found))),
        async run(call, executor) {
          const uuid = uuidOf(call);
          if (uuid === undefined) return refuse('not_found');
          const outcome = await changeZone(executor, uuid, call.body as Partial<ZoneFields>);
          if (!outcome.ok) return outcome;
          const { before, after } = outcome.value;
          const audit = [entry(after, audited(before), audited(after))];
          return written(executor, after, audit, 'All records of the zone are applied anew.');
        },
      },
    },
    deleteRdnsZone: {
      write: {
        async run(call, executor) {
          const uuid = uuidOf(call);
          const outcome = uuid === undefined ? refuse('not_found') : await deleteZone(executor, uuid);
          if (!outcome.ok) return outcome;
          const message =
            'The zone is let go of: what its server holds stays there, and the records here wait for a zone that covers them.';
          const text = JSON.stringify({ uuid, message });
          const audit = [entry(outcome.value, audited(outcome.value), undefined)];
          return { ok: true, value: { change: anyChange, render: () => text, audit } };
        },
      },
    },
  };
}

function uuidOf(call: Call): string | undefined {
  const uuid = call.params.uuid ?? '';
  return isUuid(uuid) ? uuid.toLowerCase() : undefined;
}

function judgeZone(call: Call, found: readonly Problem[]) {
  const { zone } = membersOf(call.body);
  const { driver, ...fields } = soundFields(call, found);
  const problems: Problem[] = [];
  const read = typeof zone === 'string' && isSound(found, '/zone') ? parseReverseZone(zone) : undefined;
  if (read?.ok === false) problems.push(problem(['zone'], read.code, read.sentence));
  const settings = driver === undefined ? undefined : parseZoneSettings({ driver, ...fields });
  // What the schema refused is told by it alone: here it looks as if it were absent.
  if (settings?.ok === false) problems.push(...settings.problems.filter(({ field }) => isSound(found, field)));
  if (driver === undefined) problems.push(...judgeZoneChange(fields));
  if (read?.ok && driver === 'embedded' && isSingleName(read.zone)) problems.push(singleName('/zone', read.zone.name));
  const value = read?.ok && settings?.ok ? { zone: read.zone, settings: settings.settings } : undefined;
  return judgedBy(problems, value);
}

/** The settings' fields that the schema found right, as far as they can be read. */
function soundFields(call: Call, found: readonly Problem[]): Partial<ZoneFields> {
  const { zone: _, ...fields } = membersOf(call.body);
  const sound = Object.entries(fields).filter(([name]) => isSound(found, `/${name}`));
  return Object.fromEntries(sound) as Partial<ZoneFields>;
}

function audited({ row }: KnownZone): object {
  return { zone: row.zone, driver: row.driver, ...settingsJson(row.settings) };
}

function entry({ row }: KnownZone, before: object | undefined, after: object | undefined): AuditEntry {
  return { kind: 'rdns_zone', uuid: row.uuid, ownerUuid: null, providerUuid: null, before, after };
}
