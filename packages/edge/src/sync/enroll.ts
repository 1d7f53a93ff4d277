/**
 * Trades a one-time token for the router's key and keeps the key in the state directory, readable by its owner alone.
 */
import { closeSync, fsyncSync, mkdirSync, openSync, renameSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { AgentEnrolled, AgentEnrollment } from '@levee/contract/agent.ts';
import { createCaller, parseEndpoints } from '@levee/follow/endpoint.ts';

export const keyFileName = 'router.key';

export type Enrolled =
  | { readonly ok: true; readonly router: { uuid: string; name: string; location: string }; readonly keyFile: string }
  /** `refused`: a control plane said no (the token is spent or unknown); otherwise none was reached. */
  | { readonly ok: false; readonly refused: boolean; readonly reason: string };

const patienceMilliseconds = 15_000;

/** Tries the addresses in turn. The key file is replaced whole. Throws when an address is malformed. */
export async function enroll(addresses: readonly string[], token: string, stateDirectory: string): Promise<Enrolled> {
  const caller = createCaller(patienceMilliseconds);
  const failures: string[] = [];
  try {
    for (const endpoint of parseEndpoints(addresses)) {
      try {
        const answer = await caller.post(endpoint, '/agent/v1/enroll', {}, { token } satisfies AgentEnrollment);
        const enrolled = answer.status === 200 ? parseEnrolled(answer.body) : undefined;
        if (enrolled) {
          const keyFile = writeKey(stateDirectory, enrolled.key);
          const { router_uuid: uuid, name, location } = enrolled;
          return { ok: true, router: { uuid, name, location }, keyFile };
        }
        const reason = `${endpoint.text}: ${messageOf(answer.body) ?? `answered ${answer.status}`}`;
        if (answer.status >= 400 && answer.status < 500) return { ok: false, refused: true, reason };
        failures.push(reason);
      } catch (error) {
        failures.push(`${endpoint.text}: ${(error as NodeJS.ErrnoException).code ?? (error as Error).message}`);
      }
    }
  } finally {
    caller.close();
  }
  return { ok: false, refused: false, reason: failures.join('; ') };
}

function parseJson(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

function parseEnrolled(body: string): AgentEnrolled | undefined {
  const value = parseJson(body);
  const names = ['router_uuid', 'name', 'location', 'key'] as const;
  return value && names.every((name) => typeof value[name] === 'string')
    ? (value as unknown as AgentEnrolled)
    : undefined;
}

function messageOf(body: string): string | undefined {
  const message = parseJson(body)?.message;
  return typeof message === 'string' ? message : undefined;
}

/** Whole or not at all: an edge may be reading it. Answers the file's path. */
export function writeKey(directory: string, key: string): string {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const path = join(directory, keyFileName);
  const aside = `${path}.tmp`;
  const fd = openSync(aside, 'w', 0o600);
  writeSync(fd, `${key}\n`);
  fsyncSync(fd);
  closeSync(fd);
  renameSync(aside, path);
  return path;
}
