import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type RecordFacts, recordState, type ZoneFacts } from './record-state.ts';

const record: RecordFacts = {
  ips: '203.0.113.7',
  changePosition: 9,
  appliedPosition: 4,
  failure: null,
  held: false,
  deleted: false,
};
const zone: ZoneFacts = {
  zone: '113.0.203.in-addr.arpa',
  driver: 'rfc2136',
  tried: true,
  trouble: null,
  troubleSince: null,
  lastError: null,
};
const since = '2026-01-31T12:00:00.000Z';

for (const [what, facts, of, state, reason] of [
  ['the server has it', { appliedPosition: 9 }, zone, 'active', undefined],
  [
    'the server has it and is away now',
    { appliedPosition: 9 },
    { ...zone, trouble: 'away', troubleSince: since },
    'active',
    undefined,
  ],
  ['no zone covers it', {}, undefined, 'pending', /No reverse zone covers 203\.0\.113\.7: the operator adds one/],
  [
    'it is deleted and no zone covers it',
    { deleted: true },
    undefined,
    'pending',
    /there is no server to take the record from/,
  ],
  ['the server refused it', { failure: 'It says no.' }, zone, 'failed', /^It says no\.$/],
  [
    'the server is away',
    {},
    { ...zone, trouble: 'away', troubleSince: since, lastError: 'connection refused' },
    'pending',
    /is away since 2026-01-31T12:00:00\.000Z: connection refused\.$/,
  ],
  [
    'the server refuses everything',
    {},
    { ...zone, trouble: 'refused', troubleSince: since, lastError: 'BADKEY' },
    'failed',
    /refuses changes: BADKEY\.$/,
  ],
  ['the server was never tried', {}, { ...zone, tried: false }, 'pending', /has not been tried yet\.$/],
  [
    'the embedded server was never tried',
    {},
    { ...zone, driver: 'embedded', tried: false },
    'pending',
    /switched off\?/,
  ],
  ['it was sent with refused ones', { held: true }, zone, 'pending', /^Not tried yet: .* refused other records/],
  ['it is on its way', {}, zone, 'pending', /on its way/],
] as const satisfies readonly (readonly [
  string,
  Partial<RecordFacts>,
  ZoneFacts | undefined,
  string,
  RegExp | undefined,
])[]) {
  test(`${what}: ${state}`, () => {
    const derived = recordState({ ...record, ...facts }, of);
    assert.equal(derived.state, state);
    if (reason === undefined) assert.equal(derived.reason, undefined);
    else assert.match(derived.reason ?? '', reason);
  });
}
