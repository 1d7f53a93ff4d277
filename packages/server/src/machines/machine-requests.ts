/**
 * What requests of machines have in common, routers' agents and detectors alike: a key of their role, known before a byte
 * of a body is read, few reports at once, and the errors' form. Never knows what a machine may ask.
 */
import { createHash } from 'node:crypto';
import { parseKeyRole } from '@levee/core/account/key.ts';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { isUnavailable } from '../store/failure.ts';

/** Of one machine, being read or stored. It sends one at a time; a second one covers an answer that was lost. */
const REPORTS_AT_ONCE = 2;

export interface MachineRequestsOptions<Caller> {
  readonly role: 'router' | 'detector';
  /** Undefined: no machine has this key. `keyHash`: SHA-256, hexadecimal. */
  readonly byKeyHash: (keyHash: string) => Promise<Caller | undefined>;
  readonly uuidOf: (caller: Caller) => string;
  readonly logError: (error: unknown, message: string) => void;
}

export interface MachineRequests<Caller> {
  /** Hooks for `onRequest`. */
  readonly authenticated: (request: FastifyRequest, reply: FastifyReply) => Promise<void>;
  /** Behind `authenticated`. */
  readonly oneByOne: (request: FastifyRequest, reply: FastifyReply) => Promise<void>;
  /** Whose request it is; undefined, and 401 answered, when nobody's. */
  callerOf(request: FastifyRequest, reply: FastifyReply): Caller | undefined;
  refuseKey(reply: FastifyReply): void;
  /** 503 while the database is away, 500 for a mistake of ours. Resolves to nothing: a reply is a thenable that waits for its own end, which a hook must not. */
  guarded(reply: FastifyReply, work: () => Promise<unknown>): Promise<void>;
}

export function machineRequests<Caller>(options: MachineRequestsOptions<Caller>): MachineRequests<Caller> {
  const { role, byKeyHash, uuidOf, logError } = options;
  const callers = new WeakMap<FastifyRequest, { readonly caller: Caller }>();
  const reporting = new Map<string, number>();

  const guarded = async (reply: FastifyReply, work: () => Promise<unknown>): Promise<void> => {
    try {
      await work();
    } catch (error) {
      if (isUnavailable(error)) {
        reply.header('retry-after', '1');
        refuse(reply, 503, 'unavailable', 'The database cannot be reached at present; try again shortly.');
      } else {
        logError(error, `a request of a ${role} failed`);
        const message = 'The service failed on this request; the request id finds the cause in its log.';
        refuse(reply, 500, 'internal', message);
      }
    }
  };
  const refuseKey = (reply: FastifyReply): void => {
    reply.header('www-authenticate', 'Bearer');
    refuse(reply, 401, 'invalid_api_key', `The ${role}'s key is missing, unknown or no longer valid.`);
  };

  return {
    authenticated: (request, reply) =>
      guarded(reply, async () => {
        const [scheme, key = ''] = (request.headers.authorization ?? '').split(' ');
        const isKey = scheme?.toLowerCase() === 'bearer' && parseKeyRole(key) === role;
        const caller = isKey ? await byKeyHash(createHash('sha256').update(key).digest('hex')) : undefined;
        if (caller === undefined) refuseKey(reply);
        else callers.set(request, { caller });
      }),
    async oneByOne(request, reply) {
      const known = callers.get(request);
      if (known === undefined) return;
      const uuid = uuidOf(known.caller);
      const others = reporting.get(uuid) ?? 0;
      if (others >= REPORTS_AT_ONCE) {
        reply.header('retry-after', '1');
        const message = `Earlier reports of this ${role} are still being taken: send one at a time.`;
        refuse(reply, 429, 'rate_limited', message);
        return;
      }
      reporting.set(uuid, others + 1);
      // Comes in any case, also when the sender goes away in the middle.
      reply.raw.on('close', () => {
        const left = (reporting.get(uuid) ?? 1) - 1;
        if (left > 0) reporting.set(uuid, left);
        else reporting.delete(uuid);
      });
    },
    callerOf(request, reply) {
      const known = callers.get(request);
      if (known === undefined) refuseKey(reply);
      return known?.caller;
    },
    refuseKey,
    guarded,
  };
}

export function refuse(reply: FastifyReply, status: number, error: string, message: string, more: object = {}): void {
  reply.code(status).send({ error, message, ...more, request_id: reply.request.id });
}
