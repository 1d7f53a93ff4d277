/** What every speaker keeps to, the fake as well as real ones. Test code only. */
import assert from 'node:assert/strict';
import { waitUntil } from '../../../store/testing/wait-until.ts';
import type { BgpSpeaker, SpeakerSession } from '../port.ts';
import { routeOfFields } from './flowrules.ts';

/** One that is started, and has nothing. Its session is left open. */
export async function holdToContract(speaker: BgpSpeaker): Promise<SpeakerSession> {
  let found: SpeakerSession | undefined;
  await waitUntil(
    async () => {
      const connected = await speaker.connect(() => {});
      if (connected.ok) found = connected.session;
      else assert.match(connected.reason, /\.$/, 'a trouble is a sentence');
      return connected.ok;
    },
    'it connects',
    20_000,
  );
  assert.ok(found !== undefined);
  const session = found;
  const listed = async () => {
    const list = await session.list();
    assert.ok(list.ok);
    return new Map([...list.ours].sort());
  };
  const fields = { dst: '198.18.0.5', components: { protocol: 'udp', 'source-port': '53' } };
  const discard = routeOfFields({ ...fields, action: 'discard' });
  const limited = routeOfFields({ ...fields, action: 'rate-limit', ratelimit: 10_000 });
  const blackhole = routeOfFields({ dst: '2001:db8::5', components: {}, action: 'blackhole' });
  const taken = { ok: true, refused: new Map() };
  assert.equal(discard.key, limited.key);
  assert.deepEqual(await listed(), new Map());
  assert.deepEqual(await session.announce([discard, blackhole]), taken);
  const both = (first: typeof discard) =>
    new Map([first, blackhole].map(({ key, content }) => [key, content] as const).sort());
  assert.deepEqual(await listed(), both(discard));
  assert.deepEqual(await session.announce([discard]), taken, 'again');
  assert.deepEqual(await session.announce([limited]), taken, 'with another action');
  assert.deepEqual(await listed(), both(limited), 'one route has one action');
  assert.deepEqual(await session.withdraw([limited]), taken);
  assert.deepEqual(await session.withdraw([{ key: limited.key }]), taken, 'what it has not is no failure');
  assert.deepEqual(await listed(), new Map([[blackhole.key, blackhole.content]]), 'and nothing else went');
  const asked = await session.list([blackhole.key, limited.key]);
  assert.ok(asked.ok);
  assert.deepEqual(asked.ours, new Map([[blackhole.key, blackhole.content]]), 'of these alone');
  assert.deepEqual(asked.foreign, new Set());
  const none = await session.list([]);
  assert.deepEqual(none, { ok: true, ours: new Map(), foreign: new Set() });
  assert.deepEqual(await session.withdraw([blackhole]), taken);
  assert.deepEqual(await session.announce([]), taken);
  assert.deepEqual(await listed(), new Map());
  return session;
}
