import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import { ownDirectory } from '../../testing/directory.ts';
import { enterOwnNamespace } from '../../testing/own-namespace.ts';
import { chooseKernel, isOlder, parseNftVersion } from './choose.ts';

const skip = enterOwnNamespace() ?? false;

test('versions are read and compared by their numbers', () => {
  assert.deepEqual(parseNftVersion('nftables v1.0.6 (Lester Gooch #5)'), [1, 0, 6]);
  assert.deepEqual(parseNftVersion('nftables v1.1 (x)'), [1, 1, 0]);
  assert.equal(parseNftVersion('command not found'), undefined);
  assert.ok(isOlder([1, 0, 2], [1, 0, 6]));
  assert.ok(isOlder([0, 9, 8], [1, 0, 6]));
  assert.ok(!isOlder([1, 0, 6], [1, 0, 6]));
  assert.ok(!isOlder([1, 0, 10], [1, 0, 6]));
  assert.ok(!isOlder([2, 0, 0], [1, 0, 6]));
});

test('root with nft gets the library and netlink; the command serves when asked for', { skip }, async () => {
  for (const prefer of ['library', 'command'] as const) {
    const choice = await chooseKernel('levee', prefer);
    assert.ok(choice.ok);
    assert.equal(choice.access.driver.name, prefer);
    assert.equal(typeof choice.access.kernel?.generation(), 'number');
    await choice.access.driver.close();
    choice.access.kernel?.close();
  }
});

/** What a process of another user or with other commands is told. */
function reasonOf(command: string[], env: NodeJS.ProcessEnv = process.env): unknown {
  const module = new URL('./choose.ts', import.meta.url).href;
  const script = `import(${JSON.stringify(module)}).then(({chooseKernel}) => chooseKernel('levee')).then((choice) => { console.log(JSON.stringify(choice)); process.exit(); });`;
  const [first = '', ...rest] = [...command, process.execPath, '-e', script];
  return JSON.parse(execFileSync(first, rest, { encoding: 'utf8', env }));
}

test('without rights it says what is missing', { skip }, () => {
  assert.deepEqual(reasonOf(['setpriv', '--inh-caps=-all', '--bounding-set=-all']), {
    ok: false,
    reason: 'not root: the kernel needs CAP_NET_ADMIN to change packet filtering',
  });
});

test('without nft it says so', (t) => {
  assert.deepEqual(reasonOf([], { ...process.env, PATH: ownDirectory(t) }), {
    ok: false,
    reason: 'nft not installed: no such command',
  });
});
