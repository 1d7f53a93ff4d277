/**
 * The one table of error codes: what each means and which status carries it. Owns the words and numbers; sentences
 * for a particular request are written where the request is judged.
 */
import Type from 'typebox';

interface ErrorKind {
  readonly status: number;
  readonly summary: string;
}

const kind = (status: number, summary: string): ErrorKind => ({ status, summary });

export const errors = {
  invalid_json: kind(400, 'The body is not a JSON text, or holds a member name that is refused.'),
  validation_failed: kind(
    400,
    'A field is missing, unknown, of the wrong type, out of bounds or at odds with another.',
  ),
  missing_api_key: kind(401, 'The x-api-key header is absent.'),
  invalid_api_key: kind(401, 'The API key is unknown, misspelt, revoked or expired.'),
  ip_not_allowed: kind(403, "An address lies outside the caller's."),
  provider_key_required: kind(403, 'The operation acts on what a provider holds; the key belongs to another role.'),
  operator_key_required: kind(403, 'The operation belongs to whoever runs the installation.'),
  read_only_key: kind(403, 'The key may read only.'),
  operation_not_allowed: kind(403, 'The key is limited to some operations, and this is none of them.'),
  source_not_allowed: kind(403, 'The key may not be used from this address.'),
  not_found: kind(404, 'No such path, or no such object for this caller.'),
  method_not_allowed: kind(405, 'The path exists, the method does not; `Allow` lists those that do.'),
  conflict: kind(409, 'The request is at odds with what is stored; `details` says with what.'),
  body_too_large: kind(413, 'The body exceeds 1 MiB.'),
  unsupported_media_type: kind(415, 'The body is not application/json.'),
  idempotency_key_reused: kind(422, 'The Idempotency-Key was used before with another request.'),
  invalid_request: kind(400, 'The request is not well-formed HTTP.'),
  request_timeout: kind(408, 'The request did not arrive in time.'),
  headers_too_large: kind(431, 'The header fields exceed 16 KiB.'),
  internal: kind(500, 'A fault of the service; the request id finds it in the log.'),
  unavailable: kind(
    503,
    'The database is away, or does not answer (told after 10 seconds at most); `Retry-After` says when to try again. ' +
      'Nothing was done, unless `details` say `outcome_unknown`: then the change may or may not have been made. A POST ' +
      'that had an Idempotency-Key can be sent again with the same one, and is carried out once.',
  ),
  rate_limited: kind(429, 'Too many requests; `Retry-After` says when to try again.'),
  quota_exceeded: kind(429, 'The account holds as many objects as it may.'),
} as const satisfies Record<string, ErrorKind>;

export type ErrorCode = keyof typeof errors;

/** One thing that is wrong with a request. `field` is a JSON pointer (RFC 6901) into the body, or a name after `?`. */
export const problem = Type.Object(
  {
    field: Type.String(),
    code: Type.String(),
    message: Type.String(),
    quota: Type.Optional(
      Type.Object(
        {
          kind: Type.String(),
          maximum: Type.Optional(Type.Integer({ minimum: 0 })),
          used: Type.Optional(Type.Integer({ minimum: 0, description: 'One more than the maximum: or more.' })),
        },
        { additionalProperties: false, description: 'Which quota is used up; the figures of the own one alone.' },
      ),
    ),
  },
  { $id: 'Problem', additionalProperties: false },
);
export type Problem = Type.Static<typeof problem>;

export const errorBody = Type.Object(
  {
    error: Type.Enum(Object.keys(errors) as ErrorCode[], { description: 'The kind of error.' }),
    message: Type.String({ minLength: 1, description: 'What was wrong, what was received, what is allowed.' }),
    field: Type.Optional(Type.String({ description: 'JSON pointer to the first field concerned.' })),
    details: Type.Optional(Type.Array(problem, { description: 'Every problem found.' })),
    request_id: Type.Optional(Type.String()),
  },
  { $id: 'Error', additionalProperties: false },
);
export type ErrorBody = Type.Static<typeof errorBody>;
