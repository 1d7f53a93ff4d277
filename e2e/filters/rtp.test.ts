/**
 * Guarantees of filter kind 28 with sipp of Debian at both ends of the router: a recorded call, and its echo. No program of
 * Debian speaks WebRTC on its own: STUN and DTLS on one port are held to the kind's vectors alone.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { labObstacle } from '@levee/lab/namespace.ts';
import { openPacketSocket } from '@levee/lab/packet-socket.ts';
import { device } from '@levee/lab/router-path.ts';
import { client, FilteredPath, families, server } from './filtered-path.ts';
import { startUserAgentServer } from './sipp.ts';
import { junk, Strangers } from './strangers.ts';

const mediaPort = 6000;
const kindId = 28;
/** Half a second of G.711 in packets of 30 ms is 16. */
const leastPackets = 10;

/** One call: half a second of the recording that sipp brings, then its end. */
const scenario = (family: 4 | 6) => `<?xml version="1.0" encoding="UTF-8"?>
<scenario name="call with media">
  <send retrans="500"><![CDATA[
INVITE sip:echo@[remote_ip]:[remote_port] SIP/2.0
Via: SIP/2.0/[transport] [local_ip]:[local_port];branch=[branch]
From: <sip:caller@[local_ip]:[local_port]>;tag=[call_number]
To: <sip:echo@[remote_ip]:[remote_port]>
Call-ID: [call_id]
CSeq: 1 INVITE
Contact: <sip:caller@[local_ip]:[local_port]>
Content-Type: application/sdp
Content-Length: [len]

v=0
o=caller 1 1 IN IP${family} [local_ip]
s=-
c=IN IP${family} [media_ip]
t=0 0
m=audio [auto_media_port] RTP/AVP 8
a=rtpmap:8 PCMA/8000
]]></send>
  <recv response="100" optional="true"/>
  <recv response="180" optional="true"/>
  <recv response="200" rtd="true"/>
  <send><![CDATA[
ACK sip:echo@[remote_ip]:[remote_port] SIP/2.0
Via: SIP/2.0/[transport] [local_ip]:[local_port];branch=[branch]
From: <sip:caller@[local_ip]:[local_port]>;tag=[call_number]
To: <sip:echo@[remote_ip]:[remote_port]>[peer_tag_param]
Call-ID: [call_id]
CSeq: 1 ACK
Content-Length: 0

]]></send>
  <nop><action><exec play_pcap_audio="/usr/share/sip-tester/g711a.pcap"/></action></nop>
  <pause milliseconds="500"/>
  <send retrans="500"><![CDATA[
BYE sip:echo@[remote_ip]:[remote_port] SIP/2.0
Via: SIP/2.0/[transport] [local_ip]:[local_port];branch=[branch]
From: <sip:caller@[local_ip]:[local_port]>;tag=[call_number]
To: <sip:echo@[remote_ip]:[remote_port]>[peer_tag_param]
Call-ID: [call_id]
CSeq: 2 BYE
Content-Length: 0

]]></send>
  <recv response="200"/>
</scenario>
`;

test("a call's media goes through the filter and comes back, what is no media is discarded", {
  skip: labObstacle() ?? false,
}, async () => {
  const directory = mkdtempSync(join(tmpdir(), 'levee-rtp-'));
  await using path = new FilteredPath('rtp');
  try {
    using strangers = new Strangers(path);
    path.filter(kindId, { port: { dst: { start: mediaPort, end: mediaPort + 3 } } });
    for (const family of families) {
      await startUserAgentServer(path, family, 5060, mediaPort);
      const file = join(directory, `call-${family}.xml`);
      writeFileSync(file, scenario(family));
      const to = family === 4 ? `${server[4]}:5060` : `[${server[6]}]:5060`;
      // Behind Ethernet and IP: the source port of what comes back.
      const fromMedia = [{ offset: 14 + (family === 4 ? 20 : 40), value: mediaPort }];
      const listener = openPacketSocket(path.client, { device: device.attacker, receiveBytes: 64, only: fromMedia });
      try {
        const before = path.discarded();
        const own = ['-i', client[family], '-mi', client[family], '-timeout', '8s', '-timeout_error', '-nostdin'];
        const calling = path.run(path.client, 'sipp', ['-sf', file, '-m', '1', ...own, to]);
        const unwanted = [
          ...junk(50, 172, '00'),
          ...junk(50, 172, 'c000'),
          ...junk(50, 172, '8048'),
          ...junk(50, 11, '8000'),
          ...junk(50, 61, '16fefd00000000000000000030'),
        ];
        assert.equal(await strangers.send(mediaPort, unwanted), 0);
        const { code, output } = await calling;
        assert.equal(code, 0, output.slice(-3000));
        assert.equal(path.discarded() - before, unwanted.length, 'of the call nothing');
        let echoed = 0;
        listener.receive(() => {
          echoed += 1;
        });
        assert.ok(echoed >= leastPackets, `${echoed} packets came back`);
      } finally {
        listener.close();
      }
    }
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});
