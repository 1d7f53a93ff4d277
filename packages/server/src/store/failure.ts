/**
 * What an exception of the driver means: the database is away, a constraint refused, or a concurrent transaction won.
 * Never decides on a status or a sentence: that is http's.
 */

/** SQLSTATE classes and codes after which the same request can succeed later. PostgreSQL manual, appendix A. */
const AWAY_CLASSES = new Set([
  '08', // connection exception
  '53', // insufficient resources: connections, disk, memory
  '57', // operator intervention: shutdown, crash, starting up, statement timeout
  '58', // I/O error outside PostgreSQL
]);
const AWAY_CODES = new Set([
  '25006', // read-only: the server we reach is a standby
  '25P03', // idle in transaction too long: the server ended the session
  '55P03', // lock not available
  'XX001', // data corrupted, as a server on a failing disk reports it
]);

const SOCKET_ERRORS = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ECONNABORTED',
  'EPIPE',
  'ENOENT', // the unix socket is gone
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
]);

/** pg gives these no code. */
const DRIVER_MESSAGES = [
  'Connection terminated',
  'timeout exceeded when trying to connect',
  'timeout expired',
  'Client has encountered a connection error',
  'Client was closed',
  'Query read timeout',
  'Cannot use a pool after calling end',
];

/** The database has not answered in the time that there was. */
export class DatabaseSilent extends Error {
  constructor() {
    super('the database does not answer');
  }
}

/** A change was sent, and no answer came: it may have been made. */
export class OutcomeUnknown extends Error {
  constructor(cause: unknown) {
    super(`it is not known whether the change was made: ${cause instanceof Error ? cause.message : cause}`, { cause });
  }
}

/** True when the database cannot be reached or cannot serve at present; the request may be tried again. */
export function isUnavailable(error: unknown): boolean {
  if (error instanceof DatabaseSilent || error instanceof OutcomeUnknown) return true;
  if (error instanceof AggregateError && error.errors.length > 0) return error.errors.every(isUnavailable);
  if (!(error instanceof Error)) return false;
  const code = (error as { code?: unknown }).code;
  if (typeof code === 'string') {
    if (SOCKET_ERRORS.has(code)) return fromDatabase(error);
    if (code.length === 5) return AWAY_CODES.has(code) || AWAY_CLASSES.has(code.slice(0, 2));
  }
  return DRIVER_MESSAGES.some((message) => error.message.startsWith(message));
}

const LOST_MESSAGES = ['Connection terminated', 'Query read timeout'];
const NEVER_CONNECTED = 'Connection terminated due to connection timeout';
/** Of sockets that had been connected. */
const LOST_ERRORS = new Set(['ECONNRESET', 'ECONNABORTED', 'EPIPE', 'ETIMEDOUT']);
/** The server's last words on a connection that it ends: what it did before it does not say. */
const LAST_WORDS = new Set(['57P01', '57P02']);

/**
 * True when the connection was lost, or gave no answer: what was sent on it may have been carried out, and nothing more can be
 * done on it. False for every failure that is an answer, or that came before anything was sent.
 */
export function isUnanswered(error: unknown): boolean {
  if (error instanceof DatabaseSilent || error instanceof OutcomeUnknown) return true;
  if (!(error instanceof Error)) return false;
  const code = (error as { code?: unknown }).code;
  if (typeof code === 'string') return LOST_ERRORS.has(code) || LAST_WORDS.has(code) || /^08...$/.test(code);
  return LOST_MESSAGES.some((message) => error.message.startsWith(message)) && error.message !== NEVER_CONNECTED;
}

/** ENOENT of a file that is missing is a bug, not a database that is away: only socket calls count. */
function fromDatabase(error: Error): boolean {
  const { syscall, code } = error as NodeJS.ErrnoException;
  if (code !== 'ENOENT') return true;
  return syscall === 'connect';
}

/** True when the transaction lost against a concurrent one (40001, 40P01): run it again. */
export function isRetryable(error: unknown): boolean {
  const code = error instanceof Error ? (error as { code?: unknown }).code : undefined;
  return code === '40001' || code === '40P01';
}

/** Name of the constraint (or unique index) that refused a statement, or undefined. */
export function violatedConstraint(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const { code, constraint } = error as { code?: unknown; constraint?: unknown };
  if (typeof code !== 'string' || !code.startsWith('23')) return undefined;
  return typeof constraint === 'string' ? constraint : undefined;
}
