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
