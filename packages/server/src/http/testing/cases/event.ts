/** Requests for the stream of events. Test code only. */
import { STREAMS_OF_A_KEY } from '../../../events/streams.ts';
import type { CaseKit, OperationCases } from '../case-kit.ts';

export function eventCases({ api, world, byUser }: CaseKit): OperationCases {
  const { user } = world.holders;
  return {
    readEvents: {
      good: async () => byUser({ query: '?after=0&events=attack.*,firewall_rule.failed' }),
      bad: {
        validation_failed: async () => byUser({ query: '?after=yesterday&events=firewall_rule.sleeping' }),
        rate_limited: async () => {
          const key = await api.key(user.uuid);
          const open = () => fetch(`${api.url}/v1/event`, { headers: { 'x-api-key': key } });
          // They stay open until the interface stops.
          for (let held = 0; held < STREAMS_OF_A_KEY; held++) await open();
          return byUser({ key });
        },
      },
    },
  };
}
