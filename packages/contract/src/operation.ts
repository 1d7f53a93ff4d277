/**
 * What an operation of the interface is, as data: routes, validation, the OpenAPI document and the tests derive from
 * it. Owns the shape; says nothing about how an operation is carried out.
 */
import type Type from 'typebox';
import type { ErrorCode } from './errors.ts';

export type Role = 'operator' | 'provider' | 'user';
export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
export type Tag = 'DDoS Mitigation' | 'DDoS Mitigation [Provider]' | 'Network' | 'extension' | 'operator';

/** A capture file (the registered type of tcpdump's). Its octets are no text. */
export const pcapMedia = 'application/vnd.tcpdump.pcap';

export interface Operation {
  readonly id: string;
  /** Its number in the given interface; absent for an extension. */
  readonly number?: number;
  readonly method: Method;
  /** Below the base address, parameters in braces. */
  readonly path: string;
  readonly tag: Tag;
  readonly summary: string;
  readonly description?: string;
  /** Whose keys may call it. */
  readonly roles: readonly Role[];
  /** What a key of another role is told. */
  readonly roleError: 'provider_key_required' | 'operator_key_required';
  /** `write` is refused to a read-only key. */
  readonly access: 'read' | 'write';
  /** The parameter in `path` names an object that belongs to an account. */
  readonly params?: Type.TObject;
  readonly query?: Type.TObject;
  readonly body?: Type.TObject;
  /** Whether a body may be left out. */
  readonly bodyOptional?: boolean;
  readonly answer: Type.TSchema;
  /** Of a good answer; absent: application/json. `answer` then describes the text. */
  readonly answerMedia?: 'text/plain' | 'text/event-stream' | typeof pcapMedia;
  /** Those that come from the operation itself; `errorsOf` adds what any request can meet. */
  readonly errors: readonly ErrorCode[];
  /** Honours `Prefer: wait=N`. */
  readonly waits?: boolean;
  /** Answers with an `ETag` and honours `If-None-Match`. */
  readonly entityTag?: boolean;
  readonly example?: { readonly body?: unknown; readonly answer?: unknown };
}

const everywhere: readonly ErrorCode[] = [
  // An unknown name in the query is refused by every operation: `?dry_run=1` must not be passed over.
  'validation_failed',
  'missing_api_key',
  'invalid_api_key',
  'source_not_allowed',
  'operation_not_allowed',
  'rate_limited',
  'invalid_request',
  'request_timeout',
  'headers_too_large',
  'internal',
  'unavailable',
];

const allRoles = 3;

/** Every code that the operation can answer with. */
export function errorsOf(operation: Operation): readonly ErrorCode[] {
  const codes = new Set<ErrorCode>([...operation.errors, ...everywhere]);
  if (operation.roles.length < allRoles) codes.add(operation.roleError);
  if (operation.access === 'write') codes.add('read_only_key');
  if (operation.params) codes.add('not_found');
  // A GET's body is ignored: clients of the given interface send `{}` with some.
  if (operation.method !== 'GET') {
    for (const code of ['invalid_json', 'body_too_large', 'unsupported_media_type'] as const) codes.add(code);
  }
  if (operation.method === 'POST') codes.add('idempotency_key_reused');
  return [...codes];
}
