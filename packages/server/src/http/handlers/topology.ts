/** From the operator's requests about locations and routers to rows and answers. Decides nothing itself. */
import type { AuditKind } from '@levee/contract/schemas/audit.ts';
import type { Problem } from '@levee/core/problem.ts';
import type { InnerPools } from '@levee/core/tunnel/allocation.ts';
import { parseTunnelAddresses } from '@levee/core/tunnel/router-addresses.ts';
import type pg from 'pg';
import type { AuditEntry } from '../../commands/audit.ts';
import { announceRouter, changeRouter } from '../../commands/change-router.ts';
import { refuse } from '../../commands/outcome.ts';
import { dismissRouter } from '../../commands/router-tunnels.ts';
import {
  createLocation,
  type LocationRow,
  listLocations,
  listRouters,
  type RouterRow,
  readRouter,
  removeLocation,
  removeRouter,
  renewEnrolment,
} from '../../store/routers.ts';
import { type Call, type Handler, type Judged, membersOf } from '../call.ts';
import { isUuid } from '../uuid-text.ts';

export interface TopologyServices {
  readonly pool: pg.Pool;
  /** Where the ends of tunnels on a router take their inner addresses from. */
  readonly pools: InnerPools;
  /** Whoever keeps routers in memory reads them again; resolves when that is done here. */
  readonly routersChanged: () => Promise<void>;
}

export function topologyHandlers(services: TopologyServices): Record<string, Handler> {
  // The row is the truth: when the reading fails now, it is repeated every few seconds.
  const committed = () => services.routersChanged().catch(() => {});
  return {
    createLocation: {
      write: {
        async run(call, executor) {
          const { name } = call.body as { name: string };
          const location = await createLocation(executor.client, name);
          const json = locationJson(location);
          const audit = [entry('location', location.uuid, undefined, json)];
          return { ok: true, value: { render: () => JSON.stringify(json), audit } };
        },
      },
    },
    listLocations: {
      async read() {
        const locations = await listLocations(services.pool);
        return { ok: true, answer: { body: JSON.stringify(locations.map(locationJson)) } };
      },
    },
    deleteLocation: {
      write: {
        async run(call, executor) {
          const uuid = call.params.uuid ?? '';
          const outcome = isUuid(uuid) ? await removeLocation(executor.client, uuid) : 'not_found';
          if (outcome === 'not_found') return refuse('not_found');
          if (outcome === 'in_use') return refuse('conflict', locationInUse);
          const audit = [entry('location', outcome.uuid, locationJson(outcome), undefined)];
          return { ok: true, value: { render: () => removedJson(uuid, 'The location is removed.'), audit } };
        },
      },
    },
    createRouter: {
      write: {
        judge: judgeAddresses,
        async run(call, executor, tunnelAddresses: readonly string[] = []) {
          const { name, location } = call.body as { name: string; location: string };
          const outcome = await announceRouter(executor, services.pools, { name, location, tunnelAddresses });
          if (!outcome.ok) return outcome;
          const { router } = outcome.value;
          const announced = announcedJson(router);
          const json = { ...announced, ...tokenJson(outcome.value) };
          const audit = [entry('router', router.uuid, undefined, announced)];
          return { ok: true, value: { render: () => JSON.stringify(json), committed, audit } };
        },
      },
    },
    changeRouter: {
      write: {
        judge: judgeAddresses,
        async run(call, executor, tunnelAddresses: readonly string[] | undefined) {
          const uuid = call.params.uuid ?? '';
          if (!isUuid(uuid)) return refuse('not_found');
          const { name, location } = call.body as { name?: string; location?: string };
          const outcome = await changeRouter(executor, services.pools, uuid, { name, location, tunnelAddresses });
          if (!outcome.ok) return outcome;
          const { before, router } = outcome.value;
          const audit = [entry('router', router.uuid, announcedJson(before), announcedJson(router))];
          return { ok: true, value: { render: () => JSON.stringify(routerJson(router)), committed, audit } };
        },
      },
    },
    listRouters: {
      async read() {
        const routers = await listRouters(services.pool);
        return { ok: true, answer: { body: JSON.stringify(routers.map(routerJson)) } };
      },
    },
    readRouter: {
      async read(call) {
        const uuid = call.params.uuid ?? '';
        const router = isUuid(uuid) ? await readRouter(services.pool, uuid) : undefined;
        if (router === undefined) return refuse('not_found');
        return { ok: true, answer: { body: JSON.stringify(routerJson(router)) } };
      },
    },
    renewRouterToken: {
      write: {
        async run(call, executor) {
          const uuid = call.params.uuid ?? '';
          const renewed = isUuid(uuid) ? await renewEnrolment(executor.client, uuid) : undefined;
          if (renewed === undefined) return refuse('not_found');
          const { enrolled } = renewed.router;
          const message = enrolled
            ? "The router's present key works until the token is used, and no longer."
            : 'A token that was issued before is void.';
          const announced = announcedJson(renewed.router);
          const json = { ...announced, ...tokenJson(renewed), message };
          // What changed is the token alone, which is nobody's to read.
          const audit = [entry('router', renewed.router.uuid, announced, announced)];
          return { ok: true, value: { render: () => JSON.stringify(json), audit } };
        },
      },
    },
    deleteRouter: {
      write: {
        async run(call, executor) {
          const uuid = call.params.uuid ?? '';
          const router = isUuid(uuid) ? await readRouter(executor.client, uuid) : undefined;
          if (router === undefined) return refuse('not_found');
          await dismissRouter(executor, router.uuid);
          if (!(await removeRouter(executor.client, router.uuid))) return refuse('not_found');
          const message = 'The router is removed: its key is void, and nothing waits for it any more.';
          const audit = [entry('router', router.uuid, announcedJson(router), undefined)];
          return { ok: true, value: { render: () => removedJson(uuid, message), committed, audit } };
        },
      },
    },
  };
}

/** Places and routers are the installation's: no account's. */
function entry(kind: AuditKind, uuid: string, before: object | undefined, after: object | undefined): AuditEntry {
  return { kind, uuid, ownerUuid: null, providerUuid: null, before, after };
}

function locationJson(location: LocationRow): object {
  return { uuid: location.uuid, name: location.name, created_at: location.created_at.toISOString() };
}

function announcedJson(router: RouterRow): object {
  return {
    uuid: router.uuid,
    name: router.name,
    location: router.location,
    tunnel_addresses: router.tunnel_addresses,
    created_at: router.created_at.toISOString(),
  };
}

function routerJson(router: RouterRow): object {
  return {
    ...announcedJson(router),
    enrolled: router.enrolled,
    ...(router.enrolled_at !== null && { enrolled_at: router.enrolled_at.toISOString() }),
    ...(router.enforcement !== null && { enforcement: router.enforcement }),
    ...(router.enforcement_reason !== null && { enforcement_reason: router.enforcement_reason }),
    ...(router.last_seen_at !== null && { last_seen_at: router.last_seen_at.toISOString() }),
    ...(router.status !== null && { status: router.status }),
  };
}

function tokenJson({ token, expiresAt }: { readonly token: string; readonly expiresAt: Date }): object {
  return { enrollment_token: token, enrollment_expires_at: expiresAt.toISOString() };
}

function removedJson(uuid: string, message: string): string {
  return JSON.stringify({ uuid: uuid.toLowerCase(), message });
}

const locationInUse: Problem = {
  field: '',
  code: 'in_use',
  message: 'The location has routers; remove them before it.',
};

/** Undefined: there are none in the body. */
function judgeAddresses(call: Call): Judged {
  const given = membersOf(call.body).tunnel_addresses;
  // What is no array is the schema's to say.
  if (!Array.isArray(given)) return { ok: true };
  const parsed = parseTunnelAddresses(given);
  return parsed.ok ? { ok: true, value: parsed.addresses } : parsed;
}
