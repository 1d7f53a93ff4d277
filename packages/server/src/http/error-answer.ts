/**
 * From a failure to what the client gets: status, sentence, details, headers. The only place that turns a code into a
 * status. Never lets an exception's text out.
 */
import { type ErrorBody, type ErrorCode, errors, type Problem } from '@levee/contract/errors.ts';
import type { Failure } from '../commands/outcome.ts';
import { isUnavailable, OutcomeUnknown, violatedConstraint } from '../store/failure.ts';
import { violations } from '../store/violations.ts';

export interface ErrorAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: ErrorBody;
}

/** Problems beyond this are counted, not listed: an answer stays small whatever was sent. */
const detailsMaximum = 100;

const sentences: Partial<Record<ErrorCode, string>> = {
  not_found: 'Nothing is here for this key: the path or the object does not exist.',
  missing_api_key: 'The x-api-key header is missing: every operation needs an API key in it.',
  invalid_api_key: 'The API key in x-api-key is not valid: it is unknown, misspelt, revoked or expired.',
  read_only_key: 'This API key may only read; the operation changes something.',
  source_not_allowed: 'This API key may not be used from the address that the request came from.',
  unavailable:
    'The service cannot reach its database at present and did nothing; try again shortly. Rules in force stay in force.',
  internal: 'The service failed on this request; the request id finds the cause in its log.',
};

export function errorAnswer(failure: Failure, requestId: string, headers: Record<string, string> = {}): ErrorAnswer {
  const { status, summary } = errors[failure.code];
  const details = failure.details.map(withSubject);
  const [first] = details;
  const body: ErrorBody = { error: failure.code, message: sentenceOf(details) ?? sentences[failure.code] ?? summary };
  if (first?.field !== undefined && first.field !== '') body.field = first.field;
  if (details.length > 0) body.details = details.slice(0, detailsMaximum);
  body.request_id = requestId;
  return { status, headers: status === 503 ? { 'retry-after': '1', ...headers } : headers, body };
}

/** Of the body as a whole, the parser says what it must be or has; here it gets its name. */
function withSubject(problem: Problem): Problem {
  const bare = problem.field === '' && /^(?:must|has) /.test(problem.message);
  return bare ? { ...problem, message: `The body ${problem.message}` } : problem;
}

function sentenceOf(details: readonly Problem[]): string | undefined {
  const [first] = details;
  if (first === undefined) return undefined;
  const more = details.length - 1;
  if (more === 0) return first.message;
  return `${first.message.replace(/\.$/, '')} (and ${more} more ${more === 1 ? 'problem' : 'problems'}: see details)`;
}

const outcomeUnknown: Problem = {
  field: '',
  code: 'outcome_unknown',
  message:
    'The database stopped answering before it said whether the change was made: it may or may not have been, or may be yet. ' +
    'A POST that had an Idempotency-Key can be sent again with the same one, and is carried out once; otherwise look ' +
    'before sending it again. Rules in force stay in force.',
};

/** What an exception of the driver means to the client; undefined: a bug of ours. */
export function failureOfException(error: unknown): Failure | undefined {
  if (error instanceof OutcomeUnknown) return { code: 'unavailable', details: [outcomeUnknown] };
  if (isUnavailable(error)) return { code: 'unavailable', details: [] };
  const constraint = violatedConstraint(error);
  const violation = constraint === undefined ? undefined : violations[constraint];
  if (violation === undefined) return undefined;
  const field = violation.field ?? '';
  const detail: Problem = { field, code: violation.code, message: violationSentence(violation.code, field, error) };
  return { code: codeOfViolation[violation.code], details: [detail] };
}

const codeOfViolation = {
  already_exists: 'conflict',
  ip_in_use: 'conflict',
  subnet_already_routed: 'conflict',
  conflict: 'conflict',
  ip_not_allowed: 'ip_not_allowed',
  not_found: 'not_found',
} as const satisfies Record<string, ErrorCode>;

function violationSentence(code: keyof typeof codeOfViolation, field: string, error: unknown): string {
  const name = field.slice(1);
  switch (code) {
    case 'already_exists':
      return `${name}: is taken already; it must be one that is not in use`;
    case 'ip_in_use':
      return `${name}: ${newSubnet(error) ?? 'one of the subnets'} overlaps a subnet that is in use already`;
    case 'subnet_already_routed':
      return `${name}: one of the subnets overlaps one that a tunnel routes already`;
    case 'ip_not_allowed':
      return `${name}: is not inside the addresses that the account holds`;
    case 'not_found':
      return `${name}: does not exist`;
    default:
      return 'The request is at odds with one that was carried out at the same time; send it again.';
  }
}

/** "Key (subnet)=(203.0.113.0/28) conflicts with existing key (…)": only the caller's own side may be shown. */
function newSubnet(error: unknown): string | undefined {
  const { detail } = error as { detail?: unknown };
  return typeof detail === 'string' ? /^Key \(subnet\)=\(([0-9a-f:./]+)\)/.exec(detail)?.[1] : undefined;
}
