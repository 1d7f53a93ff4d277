/**
 * GET /firewall/rule/{uuid} against bare node:http that answers the same bytes, in turns in one run. The client shares
 * the machine's cores with whatever it measures. Target: at least 0.35.
 */
import { type LoadResult, runLoad } from './api/keep-alive-client.ts';
import { ask, makeUser, requestText, startBare, startMeasured } from './api/measured-server.ts';

const rounds = 3;
const seconds = Number(process.argv[2] ?? 4);
const connections = 64;
const server = await startMeasured();
const { userKey } = await makeUser(server);
const uuids: string[] = [];
for (let index = 0; index < 500; index++) {
  const body = {
    dst: `10.1.${index >> 8}.${index & 255}`,
    protocol: 'udp',
    action: 'drop',
    port: { dst: { start: 53 } },
  };
  uuids.push((await ask(server.url, userKey, 'POST', '/firewall/rule', body)).uuid);
}
const answer = await ask(server.url, userKey, 'GET', `/firewall/rule/${uuids[0]}`);
const bare = await startBare(JSON.stringify(answer));

let turn = 0;
const next = () => requestText('GET', `/firewall/rule/${uuids[turn++ % uuids.length]}`, userKey);
const ours: LoadResult[] = [];
const theirs: LoadResult[] = [];
await runLoad({ url: server.url, connections, seconds: 1, next });
await runLoad({ url: bare.url, connections, seconds: 1, next });
for (let round = 0; round < rounds; round++) {
  ours.push(await runLoad({ url: server.url, connections, seconds, next }));
  theirs.push(await runLoad({ url: bare.url, connections, seconds, next }));
}
await bare.stop();
await server.stop();

const best = (results: readonly LoadResult[]) => results.toSorted((a, b) => b.perSecond - a.perSecond)[0] as LoadResult;
const row = (name: string, result: LoadResult) => ({
  server: name,
  'requests/s': Math.round(result.perSecond),
  'p50 ms': result.p50Milliseconds.toFixed(2),
  'p99 ms': result.p99Milliseconds.toFixed(2),
});
console.log(`${connections} connections, ${rounds} rounds of ${seconds} s each, best of each`);
console.table([row('GET /firewall/rule/{uuid}', best(ours)), row('bare node:http', best(theirs))]);
const ratio = best(ours).perSecond / best(theirs).perSecond;
console.log(`ratio ${ratio.toFixed(2)} (target ≥ 0.35): ${ratio >= 0.35 ? 'met' : 'MISSED'}`);
