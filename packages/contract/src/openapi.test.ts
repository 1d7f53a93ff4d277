import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { TSchema } from 'typebox';
import { Check, Errors } from 'typebox/value';
import { errorBody, errors } from './errors.ts';
import { type Json, openapiDocument } from './openapi.ts';
import { parameterExample } from './openapi-examples.ts';
import { renderOpenapiFile } from './openapi-file.ts';
import { errorsOf } from './operation.ts';
import { operations } from './operations.ts';
import { event } from './schemas/event.ts';

const document = openapiDocument(operations, { baseUrl: '/v1' });

/** Number, method and path as the given interface lists them. */
const given = `1 POST /firewall/rule
2 GET /firewall/rule/{uuid}
3 DELETE /firewall/rule/{uuid}
4 GET /provider/firewall/rule
5 POST /filter
6 GET /filter
7 DELETE /filter/{uuid}
8 GET /provider/filter
9 GET /flowrule
10 GET /flowrule/{uuid}
11 GET /provider/flowrule
12 GET /attacks
13 POST /user
14 POST /user/add-ips
15 POST /user/delete-ips
16 POST /user/reset-password
17 POST /tunnel
18 GET /tunnel
19 GET /tunnel/{uuid}
20 DELETE /tunnel/{uuid}
21 POST /rdns
22 PUT /rdns
23 DELETE /rdns`;

test('the 23 operations of the given interface are declared with their numbers, and only they have one', () => {
  const numbered = operations.filter((operation) => operation.number !== undefined);
  const lines = numbered
    .sort((a, b) => Number(a.number) - Number(b.number))
    .map(({ number, method, path }) => `${number} ${method} ${path}`);
  assert.equal(lines.join('\n'), given);
});

test('no two operations share an id, a summary, or a method and path', () => {
  assert.equal(new Set(operations.map(({ summary }) => summary)).size, operations.length);
  assert.equal(new Set(operations.map(({ id }) => id)).size, operations.length);
  assert.equal(new Set(operations.map(({ method, path }) => `${method} ${path}`)).size, operations.length);
});

test('every reference in the document leads to something, and every component is used', () => {
  const used = new Set<string>();
  const visit = (value: Json): void => {
    if (typeof value !== 'object' || value === null) return;
    for (const [name, each] of Object.entries(value)) {
      if (name === '$ref' && typeof each === 'string') {
        used.add(each);
        const found = each
          .slice(2)
          .split('/')
          .reduce<Json | undefined>((at, key) => (at as Record<string, Json>)?.[key], document);
        assert.ok(found, each);
      } else visit(each);
    }
  };
  visit(document);
  const components = document.components as Record<string, Record<string, Json>>;
  for (const kind of ['schemas', 'responses']) {
    for (const name of Object.keys(components[kind] ?? {})) assert.ok(used.has(`#/components/${kind}/${name}`), name);
  }
});

test('parameters in a path are those that the operation declares', () => {
  for (const operation of operations) {
    const inPath = [...operation.path.matchAll(/\{(\w+)\}/g)].map((match) => match[1]);
    assert.deepEqual(Object.keys(operation.params?.properties ?? {}), inPath, operation.id);
  }
});

test('every operation answers 200, 401 and 500, and every declared error has its status in the document', () => {
  for (const operation of operations) {
    const item = (document.paths as Record<string, Record<string, Json>>)[operation.path]?.[
      operation.method.toLowerCase()
    ];
    const statuses = Object.keys((item as Record<string, Record<string, Json>>).responses ?? {});
    for (const status of ['200', '401', '500']) assert.ok(statuses.includes(status), operation.id);
    for (const code of errorsOf(operation))
      assert.ok(statuses.includes(String(errors[code].status)), `${operation.id} ${code}`);
  }
});

test('every operation that takes a body has an example that its schema accepts', () => {
  for (const operation of operations) {
    if (operation.body === undefined || operation.bodyOptional) continue;
    assert.ok(operation.example?.body, operation.id);
    assert.ok(
      Check(operation.body, operation.example.body),
      JSON.stringify([operation.id, Errors(operation.body, operation.example.body)]),
    );
  }
});

test('every parameter has an example that its schema accepts, and every error has one', () => {
  const responses = (document.components as { responses: Record<string, unknown> }).responses;
  for (const [name, response] of Object.entries(responses)) {
    const { examples } = (response as { content: Record<string, { examples: Record<string, { value: unknown }> }> })
      .content['application/json'] ?? { examples: {} };
    assert.deepEqual(Object.keys(examples).sort(), name.split('.').slice(1).sort(), name);
    for (const { value } of Object.values(examples)) assert.ok(Check(errorBody, value), JSON.stringify(value));
  }
  const absent: string[] = [];
  for (const { id, params, query } of operations) {
    for (const [name, schema] of Object.entries({ ...params?.properties, ...query?.properties })) {
      const example = parameterExample(name, schema as object);
      if (example === undefined) absent.push(`${id} ${name}`);
      else assert.ok(Check(schema as TSchema, example), `${id} ${name}: ${example}`);
    }
  }
  assert.deepEqual(absent, [], 'give `examples` in the schema of the parameter');
});

test('what webhooks are sent is described where webhooks are served, with an example of it', () => {
  // biome-ignore lint/suspicious/noExplicitAny: a document, as its readers take it.
  const { post } = (document.webhooks as any).event;
  const { schema, example } = post.requestBody.content['application/json'];
  assert.deepEqual(schema, { $ref: '#/components/schemas/Event' });
  assert.ok(Check(event, example), JSON.stringify(Errors(event, example)));
  assert.equal(Reflect.get(example.data, 'dst'), '203.0.113.7');
  const headers = post.parameters.map(({ name }: { name: string }) => name);
  assert.deepEqual(headers, ['webhook-id', 'webhook-timestamp', 'webhook-signature']);
  const others = operations.filter(({ path }) => !path.startsWith('/webhook'));
  assert.equal('webhooks' in openapiDocument(others, { baseUrl: '/v1' }), false);
});

test('every pattern is told in words too', () => {
  const visit = (value: unknown, where: string): void => {
    if (typeof value !== 'object' || value === null) return;
    if ('pattern' in value) assert.equal(typeof (value as { 'x-in-words'?: unknown })['x-in-words'], 'string', where);
    for (const each of Object.values(value)) visit(each, where);
  };
  for (const { id, params, query, body } of operations) for (const schema of [params, query, body]) visit(schema, id);
});

test('the checked-in document is the one that the operations give', () => {
  assert.equal(readFileSync(join(import.meta.dirname, '../generated/openapi.json'), 'utf8'), renderOpenapiFile());
});
