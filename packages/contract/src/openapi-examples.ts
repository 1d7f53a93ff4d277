/**
 * Examples in the OpenAPI document: what a contract's author gave, else what was recorded from a real server. Invents
 * a value only for a parameter whose schema leaves no doubt.
 */
import { type ErrorCode, errors } from './errors.ts';
import { recordedAnswers, recordedErrors } from './generated/recorded-answers.ts';
import type { Operation } from './operation.ts';

/** Identifier of an object in every example: the one that its example of creation has. */
export const exampleUuid = '01890a5d-ac96-774b-bcce-b302099a8057';

/** What parameters of one name hold wherever they appear. */
const byName: Readonly<Record<string, unknown>> = {
  dst: '203.0.113.7',
  ip: '203.0.113.7',
  location: 'fra1',
  limit: 100,
  cursor: '2s',
};

/** Of the headers that many operations take. */
export const headerExamples = {
  'Idempotency-Key': 'order-4711',
  Prefer: 'wait=10',
  'If-None-Match': '"y3ZbdmGLhYkz8uLcJ9fNqCmL2bA"',
  'Last-Event-ID': '5f0c3a9e-1042',
} as const;

interface ParameterSchema {
  readonly examples?: readonly unknown[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly format?: string;
  readonly default?: unknown;
}

/** Undefined: the schema gives none, and a test asks for one. */
export function parameterExample(name: string, schema: ParameterSchema): unknown {
  if (schema.examples !== undefined) return schema.examples[0];
  if (schema.enum !== undefined) return schema.enum[0];
  if (schema.const !== undefined) return schema.const;
  if (schema.default !== undefined) return schema.default;
  if (Object.hasOwn(byName, name)) return byName[name];
  if (schema.format === 'date-time') return '2026-01-31T12:00:00Z';
  return schema.format === 'uuid' || /(^|_)uuid$/.test(name) ? exampleUuid : undefined;
}

export function answerExample(operation: Operation): unknown {
  return operation.example?.answer ?? recordedAnswers[operation.id];
}

export function errorExample(code: ErrorCode): unknown {
  return recordedErrors[code] ?? { error: code, message: errors[code].summary, request_id: exampleUuid };
}
