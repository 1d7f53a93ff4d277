import assert from 'node:assert/strict';
import { test } from 'node:test';
import { detectionFault, isDetectionHere } from './detection-fault.ts';

const flowListen = [{ host: '127.0.0.1', port: 6343 }];
const detectNats = ['nats://127.0.0.1:4222'];

test('settings of detection that do not go together are refused with the names of both', () => {
  const fault = (detectRole: 'all' | 'collect' | 'detect', nats?: string[], listen = flowListen) =>
    detectionFault({ detectRole, detectNats: nats, flowListen: listen });
  assert.match(fault('all', detectNats) ?? '', /LEVEE_DETECT_NATS.*LEVEE_DETECT_ROLE.*all/);
  assert.match(fault('detect') ?? '', /LEVEE_DETECT_ROLE=detect needs.*LEVEE_DETECT_NATS/);
  assert.match(fault('collect', detectNats, []) ?? '', /LEVEE_DETECT_ROLE=collect.*LEVEE_FLOW_LISTEN=off/);
  assert.deepEqual(
    [fault('all'), fault('collect', detectNats), fault('detect', detectNats, [])],
    [undefined, undefined, undefined],
  );
});

test('one that detects what others collect needs no address of its own', () => {
  assert.equal(isDetectionHere({ detectRole: 'detect', flowListen: [] }), true);
  assert.equal(isDetectionHere({ detectRole: 'all', flowListen: [] }), false);
});
