/**
 * Owns a whole control plane in the test's own process: a data directory, an embedded PostgreSQL, the interface on a
 * free port; and its certain end. Hands out what an operator has, and what a detector would do.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { transact } from '@levee/server/commands/executor.ts';
import { recordDetectedAttack } from '@levee/server/commands/record-detected-attack.ts';
import { detectedAttack, sampleOf } from '@levee/server/commands/testing/detected.ts';
import { propose } from '@levee/server/http/testing/propose.ts';
import { startServer } from '@levee/server/main.ts';
import { pino } from 'pino';

export interface ServedRequest {
  readonly method: string;
  /** Below /v1. */
  readonly path: string;
  readonly key?: string;
  /** JSON text. */
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface ServedReply {
  readonly status: number;
  readonly text: string;
  readonly headers: Headers;
}

export interface ServedLevee {
  /** `http://127.0.0.1:<port>` */
  readonly address: string;
  readonly operatorKey: string;
  /** Where the embedded DNS server answers: `127.0.0.1:<port>`. */
  readonly dnsAddress: string;
  /** `firstEvent`: the answer never ends; what is read of it is its first event. */
  send(request: ServedRequest, firstEvent?: boolean): Promise<ServedReply>;
  /** The answer to a request that must be carried out. */
  // biome-ignore lint/suspicious/noExplicitAny: a test says what it expects of it.
  good(method: string, path: string, key: string, body?: unknown): Promise<any>;
  /** Another key of the account. */
  keyOf(account: string, options?: object): Promise<string>;
  /** A flowrule against floods to the address, as the detector proposes one; its uuid. */
  flowrule(dst: string, attackUuid?: string): Promise<string>;
  /** An attack as the detector tells of one, with what came of it by the policies in force. */
  detectedAttack(dst: string): Promise<DetectedOnes>;
  stop(): Promise<void>;
}

/** Uuids; those of the measures are of the first of their kind. */
export interface DetectedOnes {
  readonly attack: string;
  readonly flowrule: string | undefined;
  readonly rule: string | undefined;
}

export async function serveLevee(): Promise<ServedLevee> {
  const dataDirectory = mkdtempSync(join(tmpdir(), `levee-served-${process.pid}-`));
  const clean = () => rmSync(dataDirectory, { recursive: true, force: true });
  const listen = { host: '127.0.0.1', port: 0 };
  const started = await startServer({
    listen,
    dataDirectory,
    log: pino({ level: 'silent' }),
    dns: { listen: [listen], answersPerSecond: 0 },
    // Nothing leaves this machine: nobody confirms names, and every one leads here, where nobody takes webhooks.
    dnsResolvers: ['127.0.0.1:9'],
    webhookAllow: ['127.0.0.0/8'],
    resolveHost: async () => ({ ok: true, addresses: ['127.0.0.1'] }),
  }).catch((error) => {
    clean();
    throw error;
  });
  if (!started.ok) {
    clean();
    throw new Error(started.message);
  }
  const { server } = started;
  const operatorKey = server.newOperatorKey ?? '';

  const send: ServedLevee['send'] = async ({ method, path, key, body, headers }, firstEvent = false) => {
    const response = await fetch(`${server.address}/v1${path}`, {
      method,
      headers: {
        ...(key !== undefined && { 'x-api-key': key }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body }),
      signal: AbortSignal.timeout(60_000),
    });
    const text = firstEvent && response.status === 200 ? await firstEventOf(response) : await response.text();
    return { status: response.status, text, headers: response.headers };
  };
  const good: ServedLevee['good'] = async (method, path, key, body) => {
    const { status, text } = await send({
      method,
      path,
      key,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    assert.equal(status, 200, `${method} ${path} → ${status} ${text}`);
    return JSON.parse(text);
  };
  return {
    address: server.address,
    operatorKey,
    dnsAddress: (server.dns?.addresses ?? []).map(({ host, port }) => `${host}:${port}`).join(),
    send,
    good,
    async keyOf(account, options = {}) {
      const body = { account_uuid: account, name: 'test', ...options };
      return (await good('POST', '/api-key', operatorKey, body)).key;
    },
    async flowrule(dst, attackUuid) {
      const fields = { components: { protocol: 'udp', 'source-port': '11211' } };
      return (await propose(server.database.pool, dst, { fields, attackUuid })).uuid;
    },
    async detectedAttack(dst) {
      const began = Date.now() - 2_000;
      const rate = { pps: 48_000, bps: 537_600_000 };
      const vectors = { 'udp-amplification': rate };
      const detected = detectedAttack(dst, began, {
        measured: { at_ms: began + 1_000, ...rate },
        timeline: [0, 1_000].map((after) => ({ at_ms: began + after, seconds: 1, ...rate, vectors })),
        packet_samples: [sampleOf(dst, began + 10, 9), sampleOf(dst, began + 20, 10)],
      });
      const { pool } = server.database;
      // What was before somebody held the address is not shown to them.
      await pool.query(`update subnet set created_at = created_at - interval '1 hour' where subnet >>= $1::cidr`, [
        dst,
      ]);
      const outcome = await transact(pool, (executor) => recordDetectedAttack(executor, detected, new Date()));
      assert.ok(outcome.ok, outcome.ok ? '' : JSON.stringify(outcome.failure));
      const attack = outcome.value.uuid;
      const first = async (table: string) =>
        (await pool.query(`select uuid::text from ${table} where attack_uuid = $1 order by sequence limit 1`, [attack]))
          .rows[0]?.uuid;
      return { attack, flowrule: await first('flowrule'), rule: await first('firewall_rule') };
    },
    async stop() {
      await server.close();
      clean();
    },
  };
}

/** Up to the first empty line behind some data (server-sent events). */
async function firstEventOf(response: Response): Promise<string> {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  try {
    for (;;) {
      const end = /(^|\n)data:[^\n]*\n\n/.exec(text);
      if (end !== null) return text.slice(0, end.index + end[0].length);
      const { value, done } = (await reader?.read()) ?? { done: true };
      if (done) return text;
      text += value;
    }
  } finally {
    await reader?.cancel();
  }
}
