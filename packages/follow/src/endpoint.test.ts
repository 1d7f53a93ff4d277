import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseEndpoint } from './endpoint.ts';

test('addresses become what a request needs', () => {
  const options = (text: string) => {
    const parsed = parseEndpoint(text);
    return parsed.ok ? { secure: parsed.endpoint.secure, ...parsed.endpoint.options } : parsed.reason;
  };
  assert.deepEqual(options('http://192.0.2.1:8080'), { secure: false, host: '192.0.2.1', port: '8080' });
  assert.deepEqual(options('http://[2001:db8::1]'), { secure: false, host: '2001:db8::1', port: 80 });
  assert.deepEqual(options('https://control.example'), { secure: true, host: 'control.example', port: 443 });
  assert.deepEqual(options('unix:/run/levee/control.sock'), {
    secure: false,
    socketPath: '/run/levee/control.sock',
    host: 'localhost',
  });
});

test('what is no address is refused with a reason that names it', () => {
  for (const text of ['', 'control', 'ftp://x', 'unix:relative', 'http://x/path', 'http://user@x', 'http://x?y']) {
    const parsed = parseEndpoint(text);
    assert.ok(!parsed.ok, text);
    assert.ok(parsed.reason.startsWith(text), parsed.reason);
  }
});
