/**
 * Guarantees of the detector that `levee up` runs: it takes what exporters send, says where it cannot, survives its own end, and
 * needs the control plane only to tell.
 */
import assert from 'node:assert/strict';
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { after, before, describe, test } from 'node:test';
import { RunningLevee, until } from './running-levee.ts';

/** One UDP flow of a thousand packets that ended just now, as NetFlow v5 (24 octets of header, 48 of record). */
function netflow5(sequence: number, destination: string): Buffer {
  const datagram = Buffer.alloc(72);
  const uptime = 1_000_000;
  datagram.writeUInt16BE(5, 0);
  datagram.writeUInt16BE(1, 2);
  datagram.writeUInt32BE(uptime, 4);
  datagram.writeUInt32BE(Math.floor(Date.now() / 1000), 8);
  datagram.writeUInt32BE(sequence, 16);
  Buffer.from([198, 51, 100, 1]).copy(datagram, 24);
  Buffer.from(destination.split('.').map(Number)).copy(datagram, 28);
  datagram.writeUInt32BE(1_000, 40);
  datagram.writeUInt32BE(100_000, 44);
  datagram.writeUInt32BE(uptime - 10, 48);
  datagram.writeUInt32BE(uptime, 52);
  datagram.writeUInt16BE(4_000, 56);
  datagram.writeUInt16BE(5_000, 58);
  datagram[62] = 17;
  return datagram;
}

describe('the detector of `levee up`', () => {
  const dst = '203.0.113.7';
  const other = '203.0.113.8';
  const patience = 20_000;
  let busy: Socket;
  let levee: RunningLevee;
  let key: string;
  let sender: Socket;
  let flood: NodeJS.Timeout | undefined;

  before(async () => {
    busy = createSocket('udp4').bind(0, '127.0.0.1');
    await once(busy, 'listening');
    levee = await RunningLevee.start({
      environment: {
        LEVEE_EDGE_DRIVER: 'off',
        LEVEE_FLOW_LISTEN: `127.0.0.1:${busy.address().port},127.0.0.1:0`,
        LEVEE_DETECT_WORKERS: '1',
      },
    });
    key = (await levee.createProvider('Example Hosting', ['203.0.113.0/24'])).key;
    await levee.good('POST', '/operator/detection-policy', levee.operatorKey, {
      scope: '203.0.113.0/28',
      thresholds: { 'udp-other': { pps: 100 } },
      hold_s: 5,
    });
    sender = createSocket('udp4');
  });
  after(async () => {
    clearInterval(flood);
    sender?.close();
    busy?.close();
    await levee?.stop();
  });

  const begin = (destination: string) => {
    const port = Number(levee.summary.flows.listen[0]?.split(':')[1]);
    let sequence = 0;
    flood = setInterval(() => sender.send(netflow5(sequence++, destination), port, '127.0.0.1'), 5);
  };

  test('a port that is in use is named, and the others are listened on', () => {
    const { listen, refused } = levee.summary.flows;
    assert.equal(listen.length, 1, JSON.stringify(levee.summary.flows));
    assert.equal(refused.length, 1);
    assert.match(refused[0] ?? '', new RegExp(`127\\.0\\.0\\.1:${busy.address().port}`));
  });

  const attacksOn = (destination: string) => levee.good('GET', `/attacks?dst=${destination}`, key);

  test('what is exported to it becomes one attack, also when its process is killed meanwhile', async () => {
    begin(dst);
    await until('an attack', patience, async () => (await attacksOn(dst)).length > 0);
    const [found] = await attacksOn(dst);
    assert.deepEqual([found.dst, found.source, found.vectors], [dst, 'levee', ['udp-other']]);

    const { detector } = levee.processes;
    assert.ok(detector !== undefined, 'the detector is a process of its own');
    process.kill(detector, 'SIGKILL');
    await until('a new detector', patience, () => ![detector, undefined].includes(levee.processes.detector));
    const since = Date.now();
    await until('news of the same attack', patience, async () => {
      const [{ samples }] = await levee.good('GET', `/attacks/${found.uuid}`, key);
      return samples.some(({ at }: { at: string }) => Date.parse(at) > since);
    });
    clearInterval(flood);
    await until('its end', patience, async () => (await attacksOn(dst))[0].state === 'ended');
    const ids = (await attacksOn(dst)).map(({ external_id }: { external_id: string }) => external_id);
    assert.deepEqual(ids, [found.external_id]);
  });

  test('what begins while the control plane is down is told when it is back', async () => {
    const { control } = levee.processes;
    assert.ok(control !== undefined);
    process.kill(control, 'SIGKILL');
    begin(other);
    await until('the control plane', patience, async () => {
      return await fetch(`${levee.summary.address}/readyz`).then(
        ({ ok }) => ok,
        () => false,
      );
    });
    const back = Date.now();
    await until('the attack', patience, async () => (await attacksOn(other)).length > 0);
    const [{ started_at }] = await attacksOn(other);
    assert.ok(Date.parse(started_at) < back, `${started_at} is after ${new Date(back).toISOString()}`);
    clearInterval(flood);
  });

  test('a program on this machine is an exporter without being configured', async () => {
    await until(
      'figures',
      patience,
      async () => (await levee.good('GET', '/operator/exporter', levee.operatorKey)).length > 0,
    );
    const [local] = await levee.good('GET', '/operator/exporter', levee.operatorKey);
    assert.deepEqual([local.source, local.local, local.live.protocols], ['127.0.0.1', true, ['netflow5']]);
  });
});
