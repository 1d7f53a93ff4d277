/**
 * A reporter for node:test that writes one JSON value a line, for whoever runs the tests somewhere else. Owns that form.
 * The runner loads it by `--test-reporter`.
 */

export interface TestLine {
  readonly kind: 'pass' | 'fail' | 'say';
  /** Of the test, with those it lies in, or what was said. */
  readonly text: string;
  readonly seconds?: number;
  readonly skipped?: string | boolean;
  readonly error?: string;
}

/** The runner's own, at its end. */
const summaryLine = /^(?:tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) [\d.]+$/;

interface ReportedEvent {
  readonly type: string;
  readonly data: {
    readonly name?: string;
    readonly nesting?: number;
    readonly message?: string;
    readonly skip?: string | boolean;
    readonly file?: string;
    readonly details?: { readonly duration_ms?: number; readonly error?: Error & { readonly cause?: unknown } };
  };
}

export default async function* lines(source: AsyncIterable<ReportedEvent>): AsyncGenerator<string> {
  for await (const { type, data } of source) {
    const line = lineOf(type, data);
    if (line !== undefined) yield `${JSON.stringify(line)}\n`;
  }
}

function lineOf(type: string, data: ReportedEvent['data']): TestLine | undefined {
  const { message = '' } = data;
  if (type === 'test:diagnostic' && !summaryLine.test(message)) return { kind: 'say', text: message };
  if (type !== 'test:pass' && type !== 'test:fail') return undefined;
  const { duration_ms: milliseconds = 0, error } = data.details ?? {};
  const cause = error?.cause instanceof Error ? error.cause : error;
  return {
    kind: type === 'test:pass' ? 'pass' : 'fail',
    text: data.name ?? '',
    seconds: milliseconds / 1000,
    ...(data.skip !== undefined && { skipped: data.skip }),
    ...(cause !== undefined && { error: cause.stack ?? String(cause) }),
  };
}
