/**
 * Where a webhook leads, judged: all addresses of its host must be ones that it may reach. What was judged is handed on,
 * and nothing else is connected to, so that a name which means something else a moment later changes nothing.
 */
import { isIP } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { Prefix } from '@levee/core/net/prefix.ts';
import { prefixFromTrusted } from '@levee/core/net/prefix-text.ts';
import { refusalOf } from '@levee/core/webhook/target-address.ts';
import { hostOf } from '@levee/core/webhook/target-url.ts';
import { type Resolved, type ResolveHost, resolveHost } from './resolve-host.ts';

export type JudgedTarget =
  | { readonly ok: true; readonly addresses: readonly string[] }
  /** `certain` false: it may be another time. `sentence` is whole but for its full stop. */
  | { readonly ok: false; readonly certain: boolean; readonly sentence: string };

export type JudgeTarget = (url: URL) => Promise<JudgedTarget>;

export interface TargetOptions {
  /** Subnets that may be reached although they are not public. */
  readonly allow?: readonly string[] | undefined;
  readonly resolve?: ResolveHost | undefined;
}

/** Whoever makes a webhook waits for this. */
const NAME_MILLISECONDS = 5_000;

export function createTargetJudge({ allow = [], resolve = resolveHost }: TargetOptions = {}): JudgeTarget {
  const allowed = allow.map(prefixFromTrusted);
  return async (url) => {
    const host = hostOf(url);
    if (isIP(host) !== 0) return judgeAddresses(host, [host], allowed);
    const resolved = await Promise.race([resolve(host), late()]);
    if (resolved.ok) return judgeAddresses(host, resolved.addresses, allowed);
    return { ok: false, certain: !resolved.exists, sentence: `${host} cannot be reached: ${resolved.reason}` };
  };
}

async function late(): Promise<Resolved> {
  await delay(NAME_MILLISECONDS, undefined, { ref: false });
  return { ok: false, exists: true, reason: `DNS did not answer within ${NAME_MILLISECONDS / 1000} s` };
}

function judgeAddresses(host: string, addresses: readonly string[], allowed: readonly Prefix[]): JudgedTarget {
  for (const address of addresses) {
    const refusal = refusalOf(address, allowed);
    if (refusal === undefined) continue;
    const what = address === host ? `${host} is ${refusal}` : `${host} resolves to ${address}, which is ${refusal}`;
    return { ok: false, certain: true, sentence: `${what}; webhooks reach public addresses only` };
  }
  return { ok: true, addresses };
}
