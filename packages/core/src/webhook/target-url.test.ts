import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hostOf, parseTargetUrl } from './target-url.ts';

function hostIn(text: string): string | undefined {
  const parsed = parseTargetUrl(text);
  return parsed.ok ? hostOf(parsed.url) : undefined;
}

test('http and https addresses are taken, with any port, path and query', () => {
  assert.equal(hostIn('https://hooks.example.net/levee?token=1'), 'hooks.example.net');
  assert.equal(hostIn('http://hooks.example.net:8081'), 'hooks.example.net');
  assert.equal(hostIn('https://hooks.example.net./'), 'hooks.example.net');
  assert.equal(hostIn('https://[2001:DB8::7]:8443/'), '2001:db8::7');
  assert.equal(hostIn('https://bücher.example/'), 'xn--bcher-kva.example');
});

test('however an IPv4 address is written, it is the address that is judged', () => {
  for (const text of [
    'http://127.1/',
    'http://0x7f.1/',
    'http://2130706433/',
    'http://0177.0.0.1/',
    'http://①27.0.0.1/',
  ]) {
    assert.equal(hostIn(text), '127.0.0.1', text);
  }
  assert.equal(hostIn('http://[::ffff:127.0.0.1]/'), '::ffff:7f00:1');
});

test('what is refused is told without repeating it', () => {
  const cases: readonly [text: string, sentence: RegExp][] = [
    ['hooks.example.net', /absolute URL/],
    ['', /absolute URL/],
    ['https://', /absolute URL/],
    ['ftp://hooks.example.net/', /of the scheme ftp$/],
    ['file:///etc/passwd', /of the scheme file$/],
    ['unix:/run/x.sock', /of the scheme unix$/],
    ['https://me:secret@hooks.example.net/', /no user name and no password/],
    ['https://me@hooks.example.net/', /no user name and no password/],
    ['https://hooks.example.net/#part', /no fragment/],
  ];
  for (const [text, sentence] of cases) {
    const parsed = parseTargetUrl(text);
    assert.ok(!parsed.ok, text);
    assert.match(parsed.sentence, sentence, text);
    assert.doesNotMatch(parsed.sentence, /secret/);
  }
});
