/**
 * What each kind of filter was held to: where its vectors' octets are from, and the program that worked through it. A kind
 * without one says why. Who adds a kind adds a line.
 */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { filterKinds } from '@levee/core/filter/catalogue.ts';

interface Grounds {
  readonly octets: string;
  /** As the test beside this one names it. */
  readonly peer?: string;
  readonly withoutPeer?: string;
}

const grounds: Readonly<Record<string, Grounds>> = {
  'tcp-syn-protect': { octets: 'flags by RFC 9293, 3.1 and 3.10.7', peer: 'nginx' },
  'tcp-symmetric': { octets: 'flags by RFC 9293, 3.1, 3.5 and 3.6', peer: 'nginx' },
  'udp-amplification': {
    octets: "RFC 1035, RFC 5905, RFC 864, CVE-2013-5211, memcached's protocol.txt; the flow decides, not they",
    peer: 'dig',
  },
  'icmp-limit': { octets: "the types of IANA's registries, quotes by RFC 792 and RFC 4443", peer: 'ping' },
  'source-engine': { octets: "gamedig 5.3.3, Valve's developer wiki, the published SDK", peer: 'gamedig' },
  'minecraft-java': { octets: 'gamedig 5.3.3, mcproto 0.9, wiki.vg', peer: 'mcproto' },
  'minecraft-bedrock': { octets: "gamedig 5.3.3, RakNet's published source", peer: 'gamedig' },
  'minecraft-query': { octets: 'gamedig 5.3.3, wiki.vg', peer: 'gamedig' },
  fivem: { octets: "gamedig 5.3.3, the client's published source, ENet 1.3", peer: 'libenet' },
  teamspeak3: {
    octets: "@honeybbq/teamspeak-client 0.2.3, ReSpeak's description of the protocol",
    peer: '@honeybbq/teamspeak-client',
  },
  samp: { octets: 'gamedig 5.3.3, query.cpp and SAMPRakNet.cpp of open.mp', peer: 'gamedig' },
  mumble: { octets: "Mumble's protocol documentation, MumbleUDP.proto of 1.5, RFC 9293", peer: 'mumble-server' },
  wireguard: {
    octets: "the protocol's paper, 5.4: types and lengths, what is encrypted at random",
    peer: 'wireguard-go',
  },
  'openvpn-udp': { octets: "the description of OpenVPN's wire protocol, ssl_pkt.h of 2.6", peer: 'OpenVPN' },
  dns: { octets: 'RFC 1035, 4.1, RFC 6891, RFC 7873; dig 9.18', peer: 'dig' },
  quic: { octets: 'ngtcp2 0.12.1 over loopback; RFC 9369, appendix A', peer: 'ngtcp2' },
  dtls: { octets: 'RFC 6347, 4.1 and 4.2.2, RFC 9146, RFC 9147, 4', peer: 'OpenSSL' },
  stun: { octets: 'RFC 8489, 5, RFC 8656, 5 and 12.4', peer: 'coturn' },
  ntp: { octets: 'RFC 5905, 7.3, RFC 7822', peer: 'chrony' },
  sip: { octets: 'RFC 3261, 7.1 and 25.1, RFC 5626, 4.4.2', peer: 'sipp' },
  rtp: { octets: 'RFC 3550, 5.1 and 6.4, RFC 5761, 4, RFC 7983, 7, RFC 6189, 5', peer: 'sipp' },
  web: { octets: 'those of tcp-syn-protect and quic', peer: 'nginx' },
};

test('every kind says what it was held to', () => {
  assert.deepEqual(Object.keys(grounds).sort(), filterKinds.map(({ name }) => name).sort());
  for (const { name } of filterKinds) {
    assert.match(grounds[name]?.octets ?? '', /\w{3}/, name);
  }
});

for (const { name, enforcement } of filterKinds) {
  test(`${name} brings conversations that pass and others that do not, each said in words of its own`, () => {
    const { vectors } = enforcement;
    // What a SYN proxy lets on it challenges first.
    const pass = vectors.filter(({ steps }) => steps.some(({ expect }) => expect === 'pass' || expect === 'challenge'));
    const discard = vectors.filter(({ steps }) => steps.some(({ expect }) => expect === 'discard'));
    assert.ok(pass.length >= 3, `${pass.length} vectors with a packet that passes`);
    assert.ok(discard.length >= 5, `${discard.length} vectors with a packet that is discarded`);
    for (const { says, steps, family } of vectors) {
      assert.ok(says.length > 3, 'a vector that says nothing');
      assert.ok(steps.length > 0, says);
      const twins = vectors.filter((other) => other.says === says && other.family === family);
      assert.equal(twins.length, 1, `"${says}" is said twice`);
      for (const { from, expect } of steps) assert.equal(expect === undefined, from === 'server', says);
    }
  });

  test(`${name} has worked with a real program, or says why with none`, () => {
    const { peer, withoutPeer } = grounds[name] ?? {};
    assert.notEqual(peer === undefined, withoutPeer === undefined, 'one of both');
    if (peer === undefined) return;
    const file = join(import.meta.dirname, `${name}.test.ts`);
    assert.ok(existsSync(file), `no ${name}.test.ts with ${peer}`);
    const heading = readFileSync(file, 'utf8').split('\nimport')[0] ?? '';
    assert.ok(heading.toLowerCase().includes(peer.toLowerCase()), `${name}.test.ts does not speak of ${peer}`);
  });
}
