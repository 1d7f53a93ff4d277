/**
 * Writes the OpenAPI 3.1 document of a set of operations. Pure: the same operations give the same document. Named
 * schemas (`$id`) become components; everything else stands where it is used.
 */
import { type ErrorCode, errorBody, errors } from './errors.ts';
import { answerExample, errorExample, headerExamples, parameterExample } from './openapi-examples.ts';
import { description, servers, tags, title } from './openapi-texts.ts';
import { webhooksObject } from './openapi-webhooks.ts';
import { errorsOf, type Operation } from './operation.ts';

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
type JsonObject = { [name: string]: Json };

export interface OpenapiOptions {
  /** Ends in the version segment. */
  readonly baseUrl: string;
}

export function openapiDocument(operations: readonly Operation[], options: OpenapiOptions): JsonObject {
  const components: Components = { schemas: new Map(), responses: new Map() };
  const paths: Record<string, JsonObject> = {};
  for (const operation of operations) {
    const path = paths[operation.path] ?? {};
    path[operation.method.toLowerCase()] = operationObject(operation, components);
    paths[operation.path] = path;
  }
  const used = new Set(operations.map((operation) => operation.tag));
  schemaObject(errorBody, components);
  const sends = operations.some(({ id }) => id === 'createWebhook');
  return {
    openapi: '3.1.0',
    info: {
      title,
      version: '1.0.0',
      description,
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: servers(options.baseUrl),
    security: [{ apiKey: [] }],
    tags: tags.filter(({ name }) => used.has(name)).map((tag) => ({ ...tag })),
    paths,
    ...(sends && { webhooks: webhooksObject((schema) => schemaObject(schema, components)) as Json }),
    components: {
      securitySchemes: { apiKey: { type: 'apiKey', in: 'header', name: 'x-api-key' } },
      headers: sharedHeaders,
      responses: sorted(components.responses),
      schemas: sorted(components.schemas),
    },
  };
}

interface Components {
  readonly schemas: Map<string, Json>;
  readonly responses: Map<string, Json>;
}

function sorted(named: ReadonlyMap<string, Json>): JsonObject {
  return Object.fromEntries([...named].sort(([a], [b]) => (a < b ? -1 : 1)));
}

function operationObject(operation: Operation, components: Components): JsonObject {
  const object: JsonObject = {
    operationId: operation.id,
    tags: [operation.tag],
    summary: operation.summary,
    description: describe(operation),
    parameters: parametersOf(operation, components),
    responses: responsesOf(operation, components),
  };
  if (operation.body !== undefined) {
    const media: JsonObject = { schema: schemaObject(operation.body, components) };
    if (operation.example?.body !== undefined) media.example = operation.example.body as Json;
    object.requestBody = { required: operation.bodyOptional !== true, content: { 'application/json': media } };
  }
  return object;
}

function describe(operation: Operation): string {
  const keys = `Needs a key of: ${operation.roles.join(', ')}.`;
  return operation.description === undefined ? keys : `${operation.description} ${keys}`;
}

function parametersOf(operation: Operation, components: Components): Json[] {
  const parameters: Json[] = [];
  for (const [where, schema] of [
    ['path', operation.params],
    ['query', operation.query],
  ] as const) {
    const required = new Set<string>(schema?.required ?? []);
    for (const [name, property] of Object.entries(schema?.properties ?? {})) {
      const { description, examples: _, ...rest } = schemaObject(property as object, components) as JsonObject;
      const parameter: JsonObject = { name, in: where, required: required.has(name), schema: rest };
      if (description !== undefined) parameter.description = description;
      const example = parameterExample(name, property as object) as Json | undefined;
      if (example !== undefined) Object.assign(parameter, exampleOf(example, required.has(name)));
      parameters.push(parameter);
    }
  }
  if (operation.method === 'POST') {
    parameters.push(
      header('Idempotency-Key', 'Within 24 hours the same key with the same request replays its answer.', {
        type: 'string',
        minLength: 1,
        maxLength: 255,
      }),
    );
  }
  if (operation.waits) {
    const text =
      '`wait=N`: answer when it is known what becomes of the change, or after N seconds (at most 30). ' +
      '`Preference-Applied` says which.';
    parameters.push(header('Prefer', text, { type: 'string' }));
  }
  if (operation.answerMedia === 'text/event-stream') {
    const text =
      'The last `id` that the client was told: goes on behind it. Clients for such streams send it themselves.';
    parameters.push(header('Last-Event-ID', text, { type: 'string', maxLength: 64 }));
  }
  if (operation.entityTag) {
    const text = 'Entity tags that the client holds, from the header `ETag`.';
    parameters.push(header('If-None-Match', text, { type: 'string' }));
  }
  return parameters;
}

/** What need not be sent is shown, and not filled in: `x-disabled` tells the viewer of `/docs`, and others nothing. */
function exampleOf(example: Json, isRequired: boolean): JsonObject {
  return isRequired ? { example } : { examples: { default: { value: example, 'x-disabled': true } } };
}

function header(name: keyof typeof headerExamples, description: string, schema: JsonObject): Json {
  return { name, in: 'header', required: false, description, schema, ...exampleOf(headerExamples[name], false) };
}

function responsesOf(operation: Operation, components: Components): JsonObject {
  const answer: JsonObject = { schema: schemaObject(operation.answer, components) };
  const example = answerExample(operation);
  if (example !== undefined) answer.example = example as Json;
  const content = { [operation.answerMedia ?? 'application/json']: answer };
  const responses: JsonObject = { '200': { description: 'Done.', headers: answerHeaders(operation), content } };
  if (operation.entityTag) responses['304'] = { description: 'The client holds this very answer.' };
  const byStatus = Map.groupBy(errorsOf(operation), (code) => errors[code].status);
  for (const status of [...byStatus.keys()].sort((a, b) => a - b)) {
    responses[String(status)] = errorResponse(status, byStatus.get(status) ?? [], components.responses);
  }
  return responses;
}

function answerHeaders(operation: Operation): JsonObject {
  const headers: JsonObject = {};
  const add = (name: string, description: string) => {
    headers[name] = { description, schema: { type: 'string' } };
  };
  add('X-Request-Id', 'Names the request in the log: as it was sent, or made.');
  for (const name of rateFields) headers[name] = { $ref: `#/components/headers/${name}` };
  if (operation.query?.properties.limit !== undefined) {
    add('Link', 'With `limit`, where there is more: `<…>; rel="next"`, the next page (RFC 8288).');
  }
  if (operation.entityTag) add('ETag', 'Names this very answer.');
  if (operation.waits) {
    add(
      'Preference-Applied',
      'With `Prefer: wait=N`: `wait=N, outcome=…`. `applied`: in force on every router. `failed`: a router refused it, ' +
        '`state_reason` says why. `timeout`: not everywhere yet when the time was over. `not-enforced`: no router is ' +
        'enrolled, or one enforces nothing, so that waiting longer is of no use.',
    );
  }
  if (operation.method === 'POST') {
    add(
      'Idempotent-Replayed',
      '`true`: this is the answer to the same request before, byte for byte, and its `Preference-Applied`. While that ' +
        'one is still waited for, a repetition with `Prefer: wait` waits with it; one without gets the answer from before ' +
        'the wait, as does every one when the service broke down in it. What became of the change since, a read says.',
    );
  }
  return headers;
}

const rateFields = ['RateLimit-Policy', 'RateLimit'] as const;

const sharedHeaders: JsonObject = {
  'RateLimit-Policy': {
    description:
      'How many requests the key may make in how many seconds, as `q` and `w` (draft-ietf-httpapi-ratelimit-headers). On ' +
      'every answer to a valid key, good or not; absent where the installation limits nothing.',
    schema: { type: 'string' },
    example: '"default";q=6000;w=60',
  },
  RateLimit: {
    description:
      'How many requests could be made at once now, and in how many seconds all of them could be again, as `r` and `t`. ' +
      'Each replica of the service counts for itself.',
    schema: { type: 'string' },
    example: '"default";r=5999;t=1',
  },
  'Retry-After': {
    description: 'Seconds to wait before the request is sent again.',
    schema: { type: 'string' },
    example: '1',
  },
};

/** Named by what it can say: many operations share each. */
function errorResponse(status: number, codes: readonly ErrorCode[], responses: Map<string, Json>): Json {
  const name = `${status}.${codes.toSorted().join('.')}`;
  const examples = Object.fromEntries(codes.map((code) => [code, { value: errorExample(code) as Json }]));
  responses.set(name, {
    description: codes.map((code) => `\`${code}\`: ${errors[code].summary}`).join(' '),
    ...(codes.some(isForLater) && { headers: { 'Retry-After': { $ref: '#/components/headers/Retry-After' } } }),
    content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' }, examples } },
  });
  return { $ref: `#/components/responses/${name}` };
}

const isForLater = (code: ErrorCode) => code === 'rate_limited' || code === 'unavailable';

/** A plain copy, in which named schemas are references. */
function schemaObject(schema: object, components: Components): Json {
  const copy = (value: unknown): Json => {
    if (Array.isArray(value)) return value.map(copy);
    if (typeof value !== 'object' || value === null) return value as Json;
    const name = (value as { $id?: unknown }).$id;
    const members = Object.entries(value).filter(([key]) => key !== '$id');
    const object = () => Object.fromEntries(members.map(([key, each]) => [key, copy(each)]));
    if (typeof name !== 'string') return object();
    // Reserved first, so that a schema that holds itself would end.
    if (!components.schemas.has(name)) {
      components.schemas.set(name, null);
      components.schemas.set(name, object());
    }
    return { $ref: `#/components/schemas/${name}` };
  };
  return copy(schema);
}
