import assert from 'node:assert/strict';
import { test } from 'node:test';
import { loadConfig } from '../config/load.ts';
import { renderUp } from './up-summary.ts';

function linesWith(environment: Readonly<Record<string, string>>): string[] {
  const read = loadConfig({ environment, file: null });
  assert.ok(read.ok, JSON.stringify(read));
  const keys = { routerKeyChanged: false, detectorKeyChanged: false };
  const ready = { type: 'ready', address: 'http://127.0.0.1:8080', dns: [], ...keys } as const;
  const running = { ready, enforcement: { mode: 'dry' }, flows: { listen: [], refused: [] } } as const;
  return renderUp(running, read.loaded.config, 1).text.split('\n');
}

test('what is only a part of detection says so, and whether NATS took it', () => {
  const detection = (role: string) =>
    linesWith({ LEVEE_DETECT_ROLE: role, LEVEE_DETECT_NATS: 'nats://192.0.2.1:4222' }).filter((line) =>
      line.includes('NATS'),
    );
  assert.match(
    detection('collect').join(),
    /collects for NATS; NO DETECTOR HERE.*NOT CONNECTED.*nats:\/\/192\.0\.2\.1:4222/,
  );
  assert.match(detection('detect').join(), /detects a share.*NOT CONNECTED/);
  assert.deepEqual(
    linesWith({}).filter((line) => line.includes('NATS')),
    [],
  );
});

test('a BGP speaker that is configured is named when everything runs, and none where there is none', () => {
  const named = (environment: Readonly<Record<string, string>>) =>
    linesWith(environment).filter((line) => line.includes('BGP'));
  assert.deepEqual(named({}), []);
  const told = '(flowrules are announced through it; how it does: GET /v1/operator/speaker)';
  assert.deepEqual(named({ LEVEE_GOBGP: 'unix:/run/gobgp/gobgp.sock' }), [
    `  BGP speaker   gobgpd at unix:///run/gobgp/gobgp.sock ${told}`,
  ]);
  assert.deepEqual(named({ LEVEE_BGP_EXABGP: '/run/levee/exabgp.sock' }), [
    `  BGP speaker   ExaBGP by \`levee exabgp\` at /run/levee/exabgp.sock ${told}`,
  ]);
});
