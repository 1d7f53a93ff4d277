/** Meets each kind of error that a request alone can bring about, once: for the examples of errors. */
import type { ErrorCode } from '@levee/contract/errors.ts';
import { headerExamples } from '@levee/contract/openapi-examples.ts';
import type { ServedReply, ServedRequest } from '../served-levee.ts';
import type { Stage } from './stage.ts';

export interface ErrorScene {
  readonly stage: Stage;
  readonly userUuid: string;
  readonly userKey: string;
  readonly providerKey: string;
}

export async function meetErrors(scene: ErrorScene): Promise<ReadonlyMap<ErrorCode, ServedReply>> {
  const { stage, userUuid, userKey, providerKey } = scene;
  const rule = { dst: '203.0.113.7', protocol: 'udp', action: 'drop' };
  const whoami = { method: 'GET', path: '/whoami' };
  const create = (body: string, more: Partial<ServedRequest> = {}): ServedRequest => ({
    method: 'POST',
    path: '/firewall/rule',
    key: userKey,
    body,
    ...more,
  });
  const repeated = { 'idempotency-key': headerExamples['Idempotency-Key'] };
  const requests: Partial<Record<ErrorCode, readonly ServedRequest[]>> = {
    missing_api_key: [whoami],
    invalid_api_key: [{ ...whoami, key: 'lv_u_mistyped' }],
    source_not_allowed: [{ ...whoami, key: await stage.keyOf(userUuid, { sources: ['192.0.2.0/24'] }) }],
    operation_not_allowed: [{ ...whoami, key: await stage.keyOf(userUuid, { operations: ['listAttacks'] }) }],
    read_only_key: [create(JSON.stringify(rule), { key: await stage.keyOf(userUuid, { read_only: true }) })],
    provider_key_required: [{ method: 'GET', path: '/provider/firewall/rule', key: userKey }],
    operator_key_required: [{ method: 'GET', path: '/operator/provider', key: userKey }],
    ip_not_allowed: [create(JSON.stringify({ ...rule, dst: '198.51.100.7' }))],
    not_found: [{ method: 'GET', path: '/firewall/rule/01890a5d-ac96-774b-bcce-b30209900000', key: userKey }],
    conflict: [
      {
        method: 'POST',
        path: '/user',
        key: providerKey,
        body: JSON.stringify({
          username: 'bob',
          email: 'bob@example.net',
          password: 'correct-horse-battery-staple',
          ips: ['203.0.113.0/29'],
        }),
      },
    ],
    validation_failed: [create(JSON.stringify({ ...rule, dst: '203.0.113.7/24', action: 'deny' }))],
    invalid_json: [create('{"dst": "203.0.113.7",}')],
    body_too_large: [create(JSON.stringify({ ...rule, descr: 'x'.repeat(1024 * 1024) }))],
    unsupported_media_type: [create('dst=203.0.113.7', { headers: { 'content-type': 'text/plain' } })],
    idempotency_key_reused: [
      create(JSON.stringify(rule), { headers: repeated }),
      create(JSON.stringify({ ...rule, protocol: 'tcp' }), { headers: repeated }),
    ],
  };
  const met = new Map<ErrorCode, ServedReply>();
  for (const [code, sequence] of Object.entries(requests)) {
    for (const request of sequence) met.set(code as ErrorCode, await stage.send(request));
  }
  return met;
}
