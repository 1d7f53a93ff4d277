/**
 * Version 4 of GoBGP's interface, which no package has: a server of its shape, and golden octets written down from its
 * published definition. Version 3 is held to a real gobgpd in e2e/bgp.
 */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import {
  Server,
  ServerCredentials,
  type ServerReadableStream,
  type ServerWritableStream,
  type sendUnaryData,
} from '@grpc/grpc-js';
import type { RouteKey } from '@levee/core/flowspec/bgp-route.ts';
import { routeOfFields, testRoutes } from '../testing/flowrules.ts';
import { createGobgpSpeaker } from './gobgp-speaker.ts';
import { announcement, apis, listing, withdrawal } from './messages.ts';
import { decodeMessage, encodeMessage } from './protobuf.ts';

const [three, four] = apis;
const servers: Server[] = [];
after(() => {
  for (const server of servers) server.forceShutdown();
});

const hex = (octets: Uint8Array) => Buffer.from(octets).toString('hex');
const route = routeOfFields({ dst: '198.18.0.5', components: {}, action: 'discard' });

test('what is sent are the octets of the published definitions, in which the versions differ by the table alone', () => {
  assert.ok(three !== undefined && four !== undefined);
  // Path: family 9 {afi 1, safi 133}, nlri_binary 20, pattrs_binary 21 …
  const path = ['4a050801108501', 'a20107060120c6120005', 'aa010440010100'];
  const sent = hex(announcement(four, [route]));
  assert.ok(sent.startsWith('08011a'), sent);
  assert.ok(sent.includes(path[0] ?? ''), sent);
  assert.ok(sent.includes(path[1] ?? ''), sent);
  assert.ok(sent.includes(path[2] ?? ''), sent);
  assert.equal(hex(announcement(three, [route])), sent.slice(4));
  // is_withdraw 5 before the family.
  assert.equal(hex(withdrawal(four, [route.key])), '08011a1328014a050801108501a20107060120c6120005');
  // table 1, family 3, the three switches for octets 7, 8, 9.
  assert.equal(hex(listing(four, 'flow6')), '08011a050802108501380140014801');
});

interface Fake {
  readonly target: string;
  readonly paths: Map<string, readonly Uint8Array[]>;
}

const asOctets = (value: Buffer) => value;
const empty = Buffer.alloc(0);

/** Of the service of version 4 alone: version 3's is unknown there. */
async function fakeFour(): Promise<Fake> {
  const paths = new Map<string, readonly Uint8Array[]>();
  const server = new Server();
  servers.push(server);
  const method = (name: string, requestStream: boolean, responseStream: boolean) => ({
    path: `/api.GoBgpService/${name}`,
    requestStream,
    responseStream,
    requestSerialize: asOctets,
    requestDeserialize: asOctets,
    responseSerialize: asOctets,
    responseDeserialize: asOctets,
  });
  type Streaming = ServerWritableStream<Buffer, Buffer>;
  server.addService(
    {
      GetBgp: method('GetBgp', false, false),
      ListPeer: method('ListPeer', false, true),
      WatchEvent: method('WatchEvent', false, true),
      ListPath: method('ListPath', false, true),
      AddPathStream: method('AddPathStream', true, false),
    },
    {
      GetBgp: (_call: unknown, done: sendUnaryData<Buffer>) =>
        done(null, Buffer.from(encodeMessage({ 1: encodeMessage({ 1: 64500, 2: '192.0.2.10' }) }))),
      ListPeer(call: Streaming) {
        const conf = encodeMessage({ 4: '192.0.2.7', 5: 64500 });
        call.write(Buffer.from(encodeMessage({ 1: encodeMessage({ 2: conf, 5: encodeMessage({ 13: 6 }) }) })));
        call.end();
      },
      WatchEvent() {},
      ListPath(call: Streaming) {
        const family = hex(decodeMessage(call.request).octets(3) ?? empty);
        for (const [key, attributes] of paths) {
          const [of, nlri = ''] = key.split(' ');
          if (of !== family) continue;
          const path = encodeMessage({ 15: 'invalid IP', 20: Buffer.from(nlri, 'hex'), 21: attributes });
          call.write(Buffer.from(encodeMessage({ 1: encodeMessage({ 2: [path] }) })));
        }
        call.end();
      },
      AddPathStream(call: ServerReadableStream<Buffer, Buffer>, done: sendUnaryData<Buffer>) {
        call.on('data', (request: Buffer) => {
          const message = decodeMessage(request);
          if (message.number(1) !== 1) call.destroy(new Error('not the global table'));
          for (const each of message.all(3)) {
            const path = decodeMessage(each);
            const key = `${hex(path.octets(9) ?? empty)} ${hex(path.octets(20) ?? empty)}`;
            if (path.number(5) === 1) paths.delete(key);
            else paths.set(key, path.all(21));
          }
        });
        call.on('end', () => done(null, empty));
      },
    },
  );
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    ),
  );
  return { target: `127.0.0.1:${port}`, paths };
}

test('version 4 is recognised, given routes, listed and withdrawn from, and its peers are known', async () => {
  const fake = await fakeFour();
  const speaker = createGobgpSpeaker({ target: fake.target, mark: testRoutes.mark });
  const connected = await speaker.connect(() => {});
  assert.ok(connected.ok, connected.ok ? '' : connected.reason);
  const { session } = connected;
  assert.equal(session.version, 'gRPC interface v4');
  assert.deepEqual(session.peers(), [{ address: '192.0.2.7', asn: 64500, established: true }]);
  const routes = ['198.18.0.5', '2001:db8::5'].flatMap((dst) =>
    ['discard', 'blackhole'].map((action) => routeOfFields({ dst, components: {}, action })),
  );
  assert.deepEqual(await session.announce(routes), { ok: true, refused: new Map() });
  const listed = await session.list();
  assert.ok(listed.ok);
  const expected = new Map<RouteKey, string>(routes.map(({ key, content }) => [key, content]));
  assert.deepEqual(new Map([...listed.ours].sort()), new Map([...expected].sort()));
  assert.deepEqual(await session.withdraw(routes), { ok: true, refused: new Map() });
  assert.equal(fake.paths.size, 0);
  await speaker.close();
});

test('what is no gobgpd, and nothing at all, is told in words', async () => {
  const server = new Server();
  servers.push(server);
  const port = await new Promise<number>((resolve) =>
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (_error, bound) => resolve(bound)),
  );
  const reason = async (target: string) => {
    const connected = await createGobgpSpeaker({ target, mark: testRoutes.mark }).connect(() => {});
    assert.ok(!connected.ok);
    return connected.reason;
  };
  assert.equal(await reason(`127.0.0.1:${port}`), 'What answers there is no gobgpd of version 3 or 4.');
  assert.equal(await reason('unix:///nonexistent/gobgp.sock'), 'gobgpd does not answer: its socket does not exist.');
});
