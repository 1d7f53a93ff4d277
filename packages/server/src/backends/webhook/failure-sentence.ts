/**
 * Says in a sentence, whole but for its full stop, why a target was not reached or not understood. Owns the words; names
 * the host and the port, never the rest of an address, which may hold a token.
 */
import { hostOf } from '@levee/core/webhook/target-url.ts';

/** Codes of Node's (`doc/api/errors`) and of OpenSSL's certificate check (`X509_verify_cert_error_string(3)`). */
const certificateSentences: Readonly<Record<string, string>> = {
  CERT_HAS_EXPIRED: 'has expired',
  CERT_NOT_YET_VALID: 'is not valid yet',
  ERR_TLS_CERT_ALTNAME_INVALID: 'is not for that name',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'is signed by itself and by no authority',
  SELF_SIGNED_CERT_IN_CHAIN: 'is from an authority that is not trusted here',
  UNABLE_TO_GET_ISSUER_CERT: 'is from an authority that is not trusted here',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    'is from an authority that is not trusted here, or comes without the certificates in between',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    'is from an authority that is not trusted here, or comes without the certificates in between',
  CERT_REVOKED: 'is revoked',
  INVALID_PURPOSE: 'is not one of a server',
};

/** What OpenSSL says of a first answer that is no TLS. */
const notTls = new Set(['wrong version number', 'packet length too long', 'unknown protocol', 'http request']);
/** `error:0A00010B:SSL routines:ssl3_get_record:wrong version number:…` (`ERR_error_string(3)`). */
const opensslReason = /error:[0-9A-F]+:SSL routines:[^:]*:([^:\n]+)/i;
const oldTls = new Set(['unsupported protocol', 'tlsv1 alert protocol version']);

export function failureSentence(url: URL, error: unknown): string {
  const first: unknown = error instanceof AggregateError ? error.errors[0] : error;
  const { code = '', message } = first as NodeJS.ErrnoException;
  const host = hostOf(url);
  const port = url.port || (url.protocol === 'https:' ? '443' : '80');
  switch (code) {
    case 'ECONNREFUSED':
      return `${host} refuses connections to port ${port}`;
    case 'ECONNRESET':
    case 'EPIPE':
      return `${host} ended the connection without an answer`;
    case 'ETIMEDOUT':
      return `${host} does not answer on port ${port}`;
    case 'EHOSTUNREACH':
    case 'ENETUNREACH':
      return `there is no way to ${host} (${code})`;
    case 'HPE_HEADER_OVERFLOW':
      return `the header of what ${host} answers is too large`;
  }
  const certificate = certificateSentences[code];
  if (certificate !== undefined) return `the certificate of ${host} ${certificate}`;
  if (code.startsWith('HPE_')) return `${host} does not speak HTTP on port ${port}`;
  if (code === 'EPROTO' || code.startsWith('ERR_SSL_')) {
    const reason = opensslReason.exec(message)?.[1] ?? code;
    if (notTls.has(reason)) return `${host} does not speak TLS on port ${port}`;
    if (oldTls.has(reason)) return `${host} speaks no version of TLS from 1.2 on`;
    return `${host} and this service do not agree on TLS (${reason})`;
  }
  // A peer may have a hand in it: bounded, and nothing that a database does not take.
  const met = String(message)
    .slice(0, 200)
    .toWellFormed()
    .replaceAll(/\p{Cc}/gu, ' ');
  return `${host}: ${met}${code === '' ? '' : ` (${code})`}`;
}
