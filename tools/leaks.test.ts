/** Guarantees of the leak check, each with a planted leak; this repository holds none. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { findLeaks, findLeaksInText } from './leaks.ts';

// Put together here, so that this file passes the check itself.
const built = (...parts: string[]) => parts.join('');

test('a path of a build machine, a private key, a registry and a token are each found, with their line', () => {
  const text = [
    built('see ', '/wor', 'k/project/notes.md'),
    built('-----BEGIN EC ', 'PRIVATE KEY-----'),
    built('"resolved": ', '"https://npm.example.net/x.tgz"'),
    built('//npm.example.net/:_auth', 'Token=abc'),
    built('/hom', 'e/alice/levee'),
  ].join('\n');
  assert.deepEqual(
    findLeaksInText('a.md', text, []).map((leak) => leak.split(':')[1]),
    ['1', '2', '3', '4', '5'],
  );
});

test("this machine's own folder is found", () => {
  assert.equal(findLeaksInText('a.md', 'x /srv/alice/levee/y', ['/srv/alice/levee', '/root']).length, 1);
});

test('addresses of the interface, workspaces and folders of Linux are no leaks', () => {
  const text = [
    'GET /v1/firewall/rule https://example.net/builds/x /var/lib/levee /etc/levee/levee.toml',
    built('"resolved": ', '"packages/contract"'),
    '-----BEGIN CERTIFICATE-----',
  ].join('\n');
  assert.deepEqual(findLeaksInText('a.md', text, ['/root']), []);
});

test('this repository holds none', () => {
  assert.deepEqual(findLeaks(join(import.meta.dirname, '..')), []);
});
