import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { loadConfig } from '../config/load.ts';
import { controlProcess, edgeProcess } from './children.ts';

const data = mkdtempSync(join(tmpdir(), `levee-children-${process.pid}-`));
after(() => rmSync(data, { recursive: true, force: true }));

const environment = {
  LEVEE_LISTEN: '127.0.0.1:0',
  LEVEE_TRUSTED_PROXIES: '127.0.0.1,10.0.0.0/8',
  LEVEE_RATE_LIMIT: 'off',
  LEVEE_AUDIT_KEEP_DAYS: '30',
  LEVEE_DNS_LISTEN: 'off',
  LEVEE_DNS_ANSWERS_PER_SECOND: '20',
  LEVEE_DNS_RESOLVERS: '192.0.2.53:53',
  LEVEE_LOG_LEVEL: 'error',
  DATABASE_URL: 'postgres://levee@db.example.net/levee',
  LEVEE_OPERATOR_KEY: 'a-passphrase-that-somebody-chose-long',
  LEVEE_EDGE_DRIVER: 'dry',
};

test('the control plane under `levee up` gets every setting that it reads, the edge none of its secrets', () => {
  const read = loadConfig({ environment, file: null });
  assert.ok(read.ok);
  const place = { data, edgeState: data };
  const control = controlProcess(read.loaded, place, undefined).environment;
  for (const name of [
    'LEVEE_LISTEN',
    'LEVEE_TRUSTED_PROXIES',
    'LEVEE_RATE_LIMIT',
    'LEVEE_AUDIT_KEEP_DAYS',
    'LEVEE_DNS_LISTEN',
    'LEVEE_DNS_ANSWERS_PER_SECOND',
    'LEVEE_DNS_RESOLVERS',
    'LEVEE_LOG_LEVEL',
    'DATABASE_URL',
    'LEVEE_OPERATOR_KEY',
  ] as const) {
    assert.equal(control[name], environment[name], name);
  }
  const edge = edgeProcess(read.loaded, place).environment;
  assert.equal(edge.LEVEE_EDGE_DRIVER, 'dry');
  assert.deepEqual([edge.DATABASE_URL, edge.LEVEE_OPERATOR_KEY], [undefined, undefined]);
});
