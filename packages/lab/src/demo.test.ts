import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { type LabControl, type LabPlace, runLab } from './demo.ts';
import { labObstacle } from './namespace.ts';

const skip = labObstacle() ?? false;

interface SmallControlPlane {
  startLevee(place: LabPlace): Promise<LabControl>;
  places: LabPlace[];
  requests: string[];
  stops: number;
}

/** The least control plane that really filters: it hands the demonstration's one rule to the kernel itself. */
function smallControlPlane(): SmallControlPlane {
  const plane: SmallControlPlane = {
    places: [],
    requests: [],
    stops: 0,
    async startLevee(place) {
      plane.places.push(place);
      const nft = (input: string): void => {
        execFileSync('ip', ['netns', 'exec', place.routerNetns, 'nft', '-f', '-'], { input });
      };
      const server = createServer(async (request, response) => {
        let body = '';
        for await (const chunk of request) body += chunk;
        plane.requests.push(`${request.method} ${request.url} ${request.headers['x-api-key']}`);
        if (request.method === 'POST') {
          const rule = JSON.parse(body) as { dst: string; port: { src: { start: number } } };
          nft(`add table inet levee
            add chain inet levee f { type filter hook forward priority 0; }
            add rule inet levee f ip daddr ${rule.dst} udp sport ${rule.port.src.start} drop\n`);
        } else {
          nft('delete table inet levee\n');
        }
        response.end(JSON.stringify({ uuid: 'one' }));
      });
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()));
      return {
        baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
        key: 'secret',
        async stop() {
          plane.stops++;
          server.closeAllConnections();
          await new Promise<void>((resolve) => server.close(() => resolve()));
        },
      };
    },
  };
  return plane;
}

function collected(): { write(text: string): void; text: string } {
  return {
    text: '',
    write(text) {
      this.text += text;
    },
  };
}

test('a flood is seen, stopped by the rule, and seen again; nothing is left behind', { skip }, async () => {
  const plane = smallControlPlane();
  const output = collected();
  const result = await runLab({
    startLevee: (place) => plane.startLevee(place),
    output,
    secondsBefore: 1,
    secondsWithRule: 2,
    secondsAfter: 1,
    floodPacketsPerSecond: 30_000,
  });
  const [flood, , withRule, after] = result.seconds;
  assert.ok(flood && withRule && after, output.text);
  assert.ok(flood.arrived > 20_000, output.text);
  assert.ok(flood.delivered > 2_000, output.text);
  // The second second with the rule: only the players (and the first one may hold what was under way).
  assert.ok(withRule.delivered < 1_100, output.text);
  assert.ok(withRule.dropped > 20_000, output.text);
  assert.ok(withRule.legitimateDelivered > 0.95 * withRule.legitimateSent, output.text);
  assert.ok(result.stoppedMs !== undefined && result.stoppedMs < 500, output.text);
  assert.ok(result.resumedMs !== undefined && result.resumedMs >= 0, output.text);
  assert.deepEqual(plane.requests, ['POST /v1/firewall/rule secret', 'DELETE /v1/firewall/rule/one secret']);
  assert.equal(plane.stops, 1);
  assert.ok(!existsSync(`/run/netns/${plane.places[0]?.routerNetns}`));
  assert.match(output.text, /rule on/);
  assert.ok(!output.text.includes('\r'), 'a log gets whole lines only');
});

test('an interrupted demonstration deletes its rule, stops Levee and takes the namespaces down', { skip }, async () => {
  const plane = smallControlPlane();
  const interrupt = new AbortController();
  const output = collected();
  const write = output.write.bind(output);
  output.write = (text) => {
    write(text);
    if (text.includes('POST /firewall/rule')) interrupt.abort();
  };
  const result = await runLab({
    startLevee: (place) => plane.startLevee(place),
    output,
    signal: interrupt.signal,
    secondsBefore: 1,
    floodPacketsPerSecond: 5_000,
  });
  assert.equal(result.interrupted, true);
  assert.deepEqual(plane.requests, ['POST /v1/firewall/rule secret', 'DELETE /v1/firewall/rule/one secret']);
  assert.equal(plane.stops, 1);
  assert.ok(!existsSync(`/run/netns/${plane.places[0]?.routerNetns}`));
});

test('a Levee that does not start takes the lab down with its own message', { skip }, async () => {
  let netns = '';
  await assert.rejects(
    runLab({
      output: collected(),
      startLevee: async (place) => {
        netns = place.routerNetns;
        throw new Error('the database is out');
      },
    }),
    /the database is out/,
  );
  assert.ok(netns !== '' && !existsSync(`/run/netns/${netns}`));
});
