/** Guarantees of filter kind 27 with sipp of Debian at both ends of the router. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { labObstacle } from '@levee/lab/namespace.ts';
import { client, FilteredPath, families, server } from './filtered-path.ts';
import { startUserAgentServer } from './sipp.ts';
import { junk, Strangers } from './strangers.ts';

const port = 5060;
const kindId = 27;

const register = Buffer.from(`REGISTER sip:${server[4]} SIP/2.0\r\nContent-Length: 0\r\n\r\n`);
const emptyLines = Buffer.from('\r\n\r\n');

test('calls are set up and ended through the filter, what is no SIP is discarded', {
  skip: labObstacle() ?? false,
}, async () => {
  await using path = new FilteredPath('sip');
  using strangers = new Strangers(path);
  path.filter(kindId);
  for (const family of families) {
    await startUserAgentServer(path, family, port);
    const to = family === 4 ? `${server[4]}:${port}` : `[${server[6]}]:${port}`;
    const calls = ['-sn', 'uac', '-m', '20', '-r', '200', '-timeout', '8s', '-timeout_error'];
    const before = path.discarded();
    const calling = path.run(path.client, 'sipp', [...calls, '-nostdin', '-i', client[family], to]);
    const unwanted = [
      ...junk(100, 300),
      ...junk(50, 300, Buffer.from('GET / HTTP/1.1').toString('hex')),
      ...junk(50, 4),
      ...junk(20, 4, emptyLines.toString('hex')),
      ...junk(20, 20, '000100002112a442'),
    ];
    assert.equal(await strangers.send(port, unwanted), 0);
    const { code, output } = await calling;
    assert.equal(code, 0, output.slice(-3000));
    assert.equal(path.discarded() - before, unwanted.length, 'of the calls nothing');
  }
  assert.equal(await strangers.send(port, [emptyLines]), 0, 'a keep-alive of a source that has said nothing');
  assert.equal(await strangers.send(port, [register]), 1);
  assert.equal(await strangers.send(port, [emptyLines]), 1, 'the same source has');
});
