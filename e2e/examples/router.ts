/**
 * A router for the run of the examples: enrols by its token, follows the stream, reports each cursor as in force and
 * each tunnel as answering, as an edge on a router's own machine would. Carries no packet.
 */
import assert from 'node:assert/strict';
import { openStream, post, report } from '@levee/server/agents/testing/agent-client.ts';

export interface Follower {
  stop(): Promise<void>;
}

export async function followAsRouter(
  address: string,
  token: string,
  filterKinds: readonly number[],
): Promise<Follower> {
  const enrolled = await post(address, '/agent/v1/enroll', { token });
  assert.equal(enrolled.status, 200, JSON.stringify(enrolled.body));
  const key = String(enrolled.body.key);
  const stream = await openStream(address, key);
  assert.equal(stream.status, 200);
  const capabilities = ['tunnel:GRE', 'tunnel:Geneve', ...filterKinds.map((id) => `filter:${id}`)];
  let stopped = false;
  const following = (async () => {
    let told: string | undefined;
    while (!stopped) {
      if (stream.cursor !== undefined && stream.cursor !== told) {
        told = stream.cursor;
        const probes = [...stream.tunnels.keys()].map((uuid) => ({
          uuid,
          sent: 1,
          received: 1,
          rtt_ms: { min: 11.6, avg: 11.6, max: 11.6 },
          last_answer_at: new Date().toISOString(),
        }));
        const { status } = await report(address, key, { cursor: told, capabilities, probes });
        // The run of the examples takes the router out of service at its end.
        if (status !== 200) stopped = true;
      } else await new Promise((resolve) => setTimeout(resolve, 5));
    }
  })().catch(() => {});
  return {
    async stop() {
      stopped = true;
      stream.close();
      await following;
    },
  };
}
