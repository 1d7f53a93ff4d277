/**
 * Makes routes of contract's operations: those that have a handler. One that has none is not served at all: its path
 * answers 404 like any unknown one. Owns the order of judgement: key, role, right to write,
 * the key's own limits, then all that can be said of the request without the database at once, then the command.
 */
import type { OutgoingHttpHeaders } from 'node:http';
import type { Problem } from '@levee/contract/errors.ts';
import { type Operation, pcapMedia } from '@levee/contract/operation.ts';
import { noQuery } from '@levee/contract/schemas/list.ts';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Caller } from '../commands/caller.ts';
import { type Failure, refuse } from '../commands/outcome.ts';
import { answerInTime } from './answer-deadline.ts';
import type { Authenticated, KeyRing } from './authentication.ts';
import type { Answer, Answered, Call, Handler, Judged } from './call.ts';
import { entityTagOf, holdsAlready } from './entity-tag.ts';
import { withNullHints } from './null-hint.ts';
import type { RateLimits } from './rate-limit.ts';
import { type Check, compileBodyCheck, compileQueryCheck } from './schema-check.ts';
import { answerWrite, judgeRepeatKey, type WriteServices } from './write-answer.ts';

export interface OperationServices extends WriteServices {
  readonly keys: KeyRing;
  /** Absent: without limits. */
  readonly rateLimits?: RateLimits | undefined;
  readonly sendFailure: (reply: FastifyReply, failure: Failure) => void;
  readonly sendException: (reply: FastifyReply, error: unknown) => void;
}

/** These bodies hold fields that core judges: it knows how they depend on each other. */
const judgedByCore = new Set([
  'createFirewallRule',
  'changeFirewallRule',
  'replaceFirewallRules',
  'explainPacket',
  'previewFirewallRule',
  'createFilter',
]);

export function registerOperations(
  app: FastifyInstance,
  base: string,
  operations: readonly Operation[],
  handlers: Readonly<Record<string, Handler>>,
  services: OperationServices,
): readonly Operation[] {
  const served = operations.filter((operation) => handlers[operation.id] !== undefined);
  for (const operation of served) {
    const handler = handlers[operation.id];
    if (handler === undefined) continue;
    const answer = judgeAndAnswer(operation, handler, services);
    app.route({
      method: operation.method,
      url: base + operation.path.replaceAll(/\{(\w+)\}/g, ':$1'),
      exposeHeadRoute: operation.method === 'GET',
      onRequest: guard(operation, services),
      handler: (request, reply) => {
        answer(request, reply).catch((error: unknown) => services.sendException(reply, error));
        return reply;
      },
    });
  }
  return served;
}

/** Before the body is read: who is not allowed in does not get to send one. */
function guard(operation: Operation, services: OperationServices) {
  const roles = new Set(operation.roles);
  const judge = (request: FastifyRequest, reply: FastifyReply, who: Authenticated, next: () => void) => {
    if (!who.ok) {
      if (who.retrySeconds !== undefined) reply.header('retry-after', String(who.retrySeconds));
      return services.sendFailure(reply, who.failure);
    }
    if (services.rateLimits !== undefined && !admit(services.rateLimits, who.caller, reply)) {
      return services.sendFailure(reply, tooMany);
    }
    if (!roles.has(who.caller.role)) return services.sendFailure(reply, wrongRole(operation, who.caller.role));
    if (operation.access === 'write' && who.readOnly) {
      return services.sendFailure(reply, { code: 'read_only_key', details: [] });
    }
    const { operations } = who.caller.limits;
    if (operations !== undefined && !operations.has(operation.id)) {
      return services.sendFailure(reply, otherOperation(operation, operations));
    }
    request.caller = who.caller;
    next();
  };
  return (request: FastifyRequest, reply: FastifyReply, next: () => void) => {
    const who = services.keys.authenticate(request.headers['x-api-key'], request.ip);
    if (!(who instanceof Promise)) return judge(request, reply, who, next);
    answerInTime(who).then(
      (known) => judge(request, reply, known, next),
      (error: unknown) => services.sendException(reply, error),
    );
  };
}

/** Says on every answer to a good key how it stands; false: it has no request left. */
function admit(limits: RateLimits, { keyUuid, limits: own }: Caller, reply: FastifyReply): boolean {
  const { rated, policy, state } = limits.take(keyUuid, own.requestsPerMinute);
  reply.header('ratelimit-policy', policy).header('ratelimit', state);
  if (!rated.allowed) reply.header('retry-after', String(rated.retrySeconds));
  return rated.allowed;
}

const tooMany: Failure = {
  code: 'rate_limited',
  details: [
    {
      field: '',
      code: 'rate_limited',
      message:
        'This API key has made more requests than it may; RateLimit-Policy says how many a minute, Retry-After when ' +
        'to try again.',
    },
  ],
};

function wrongRole(operation: Operation, role: string): Failure {
  const one = (each: string) => `${each === 'operator' ? 'an' : 'a'} ${each}`;
  const message = `This operation needs a key of ${operation.roles.map(one).join(' or ')}; the key is of ${one(role)}.`;
  return { code: operation.roleError, details: [{ field: '', code: operation.roleError, message }] };
}

function otherOperation({ id }: Operation, allowed: ReadonlySet<string>): Failure {
  const message = `This API key may call ${[...allowed].join(', ')} and nothing else; this operation is ${id}.`;
  return { code: 'operation_not_allowed', details: [{ field: '', code: 'operation_not_allowed', message }] };
}

function judgeAndAnswer(operation: Operation, handler: Handler, services: OperationServices) {
  const checkQuery = compileQueryCheck(operation.query ?? noQuery);
  const checkBody =
    operation.body === undefined || judgedByCore.has(operation.id) ? undefined : bodyCheck(operation, operation.body);
  const { judge } = 'read' in handler ? handler : handler.write;

  return async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    const { caller } = request;
    if (caller === undefined) throw new Error('a request came past the guard');
    const query = request.query as Record<string, unknown>;
    const call: Call = {
      caller,
      params: request.params as Record<string, string>,
      query,
      body: request.body,
      raw: request.raw,
      origin: { address: request.ip?.split('%', 1)[0], requestId: request.id },
    };
    const found = [
      ...judgeRepeatKey(operation, call),
      ...checkQuery(query).map((each) => ({ ...each, field: `?${each.field.slice(1)}` })),
      ...(checkBody?.(request.body) ?? []),
    ];
    const judged = judge?.(call, found) ?? sound;
    if (found.length > 0 || !judged.ok) return services.sendFailure(reply, invalid(operation, found, judged));
    const answered: Answered =
      'read' in handler
        ? await answerInTime(Promise.resolve(handler.read(call, judged.value)), (late) => letGo(late, reply))
        : await answerWrite(services, operation, handler.write, call, judged.value);
    if (!answered.ok) {
      const { code, retrySeconds = 1 } = answered.failure;
      if (code === 'rate_limited') reply.header('retry-after', String(retrySeconds));
      return services.sendFailure(reply, answered.failure);
    }
    send(operation, request, reply, answered.answer);
  };
}

const sound: Judged = { ok: true };

/** Where the schema has spoken about a field, or about the body as a whole, the judgement of the same adds nothing. */
function invalid({ body }: Operation, found: readonly Problem[], judged: Judged): Failure {
  const told = new Set(found.map((problem) => problem.field));
  const more = judged.ok
    ? []
    : judged.problems.filter(({ field }) => !told.has(field) && !(told.has('') && field.startsWith('/')));
  return { code: 'validation_failed', details: withNullHints(body, [...found, ...more]) };
}

/** A body that is left out where one is needed is told apart from one of the wrong type. */
function bodyCheck(operation: Operation, schema: object): Check {
  const check = compileBodyCheck(schema);
  const missing = refuse('validation_failed', {
    field: '',
    code: 'required',
    message: 'The body is missing: a JSON object is needed.',
  }).failure.details;
  return (body) => (body === undefined ? (operation.bodyOptional ? [] : missing) : check(body));
}

/** An answer that came when the client had been told that none would. */
function letGo(late: Answered, reply: FastifyReply): void {
  if (late.ok) late.answer.takeOver?.(reply.raw, {});
}

function send(operation: Operation, request: FastifyRequest, reply: FastifyReply, answer: Answer): void {
  const media = operation.answerMedia ?? 'application/json';
  const type = media === pcapMedia ? media : `${media}; charset=utf-8`;
  reply.header('content-type', type).header('cache-control', 'no-store');
  if (answer.headers !== undefined) reply.headers(answer.headers);
  if (answer.takeOver !== undefined) {
    reply.hijack();
    answer.takeOver(reply.raw, reply.getHeaders() as OutgoingHttpHeaders);
    return;
  }
  if (operation.entityTag && (typeof answer.body === 'string' || answer.body instanceof Uint8Array)) {
    const tag = entityTagOf(answer.body);
    reply.header('etag', tag);
    if (holdsAlready(request.headers['if-none-match'], tag)) {
      reply.code(304).send();
      return;
    }
  }
  reply.send(answer.body);
}
