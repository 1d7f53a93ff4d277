/** Operations on flowrules and attacks: 9 to 12 of the given interface, and what an operator tells of attacks. */
import Type from 'typebox';
import { type Operation, pcapMedia } from '../operation.ts';
import { attack, attackListQuery, attackRead, providerAttackListQuery } from '../schemas/attack.ts';
import { attackReport, fastnetmonReport } from '../schemas/attack-report.ts';
import { flowrule, flowruleListQuery, providerFlowruleListQuery } from '../schemas/flowrule.ts';
import { uuidParams } from '../schemas/list.ts';

const own = {
  method: 'GET',
  roles: ['provider', 'user'],
  roleError: 'provider_key_required',
  access: 'read',
  tag: 'DDoS Mitigation',
} as const;

const ofProvider = {
  method: 'GET',
  roles: ['provider'],
  roleError: 'provider_key_required',
  access: 'read',
} as const;

const ofOperator = {
  method: 'GET',
  roles: ['operator'],
  roleError: 'operator_key_required',
  access: 'read',
  tag: 'operator',
} as const;

const told = {
  method: 'POST',
  tag: 'operator',
  roles: ['operator'],
  roleError: 'operator_key_required',
  access: 'write',
  answer: attack,
  errors: ['validation_failed', 'conflict'],
} as const;

const capture = {
  params: uuidParams,
  answer: Type.String({
    contentMediaType: pcapMedia,
    description: "libpcap's classic format, link type RAW (101).",
  }),
  answerMedia: pcapMedia,
  errors: ['not_found'],
  entityTag: true,
} as const;

const history =
  'An attack stays with the account that held the destination when it was first heard of; of one that goes on when the ' +
  "addresses go to another account, the rest is another record, that account's. When a user is deleted, its attacks " +
  "become the provider's. Of an attack on a subnet that nobody but the provider holds all of, each user with attacked addresses " +
  'in it has a record of its own share (`part_of`).';

export const attackOperations: readonly Operation[] = [
  {
    ...own,
    id: 'listFlowrules',
    number: 9,
    path: '/flowrule',
    summary: 'List flowrules',
    description:
      "BGP FlowSpec rules that the service made for the caller's addresses. They are `proposed` while no BGP speaker is " +
      'configured. A flowrule stays with the account that held its destination when it was made.',
    query: flowruleListQuery,
    answer: Type.Array(flowrule),
    errors: ['validation_failed'],
  },
  {
    ...own,
    id: 'readFlowrule',
    number: 10,
    path: '/flowrule/{uuid}',
    summary: 'Read one flowrule',
    description: 'Answers an array with the one flowrule.',
    params: uuidParams,
    answer: Type.Array(flowrule, { minItems: 1, maxItems: 1 }),
    errors: ['not_found'],
    entityTag: true,
  },
  {
    ...ofProvider,
    id: 'listProviderFlowrules',
    number: 11,
    path: '/provider/flowrule',
    tag: 'DDoS Mitigation [Provider]',
    summary: "List the flowrules of all the provider's users",
    description: 'Those of the provider itself included.',
    query: providerFlowruleListQuery,
    answer: Type.Array(flowrule),
    errors: ['validation_failed'],
  },
  {
    ...own,
    id: 'listAttacks',
    number: 12,
    path: '/attacks',
    summary: 'List DDoS attacks',
    description: `Attacks on the caller's addresses, ended ones included. ${history}`,
    query: attackListQuery,
    answer: Type.Array(attack),
    errors: ['validation_failed'],
  },
  {
    ...own,
    id: 'readAttack',
    path: '/attacks/{uuid}',
    tag: 'extension',
    summary: 'Read one attack with all that is known of it',
    description: 'Answers an array of one, as the other reads do. What nobody told is left out.',
    params: uuidParams,
    answer: Type.Array(attackRead, { minItems: 1, maxItems: 1 }),
    errors: ['not_found'],
    entityTag: true,
  },
  {
    ...own,
    id: 'readAttackPcap',
    path: '/attacks/{uuid}/pcap',
    tag: 'extension',
    summary: 'Read the sampled packets of one attack as a capture file',
    description:
      'For tcpdump, Wireshark and the like: up to 1 000 packets as exporters sampled them, from the IP header on and at most ' +
      '128 octets of each, with their true lengths. The first ones, and of the rest a random choice over the whole time. Of ' +
      'an attack without sampled packets (told by another system, or seen in flow records alone) it is a valid file with ' +
      'none.',
    ...capture,
  },
  {
    ...ofProvider,
    id: 'listProviderAttacks',
    path: '/provider/attacks',
    tag: 'extension',
    summary: "List the attacks on all the provider's users",
    description: `Those on the provider itself included. ${history}`,
    query: providerAttackListQuery,
    answer: Type.Array(attack),
    errors: ['validation_failed'],
  },
  {
    ...ofOperator,
    id: 'listAllAttacks',
    path: '/operator/attack',
    summary: 'List all attacks',
    description: `Whoever's they are, in order of creation. ${history}`,
    query: providerAttackListQuery,
    answer: Type.Array(attack),
    errors: ['validation_failed'],
  },
  {
    ...ofOperator,
    id: 'readAnyAttack',
    path: '/operator/attack/{uuid}',
    summary: "Read one attack with all that is known of it, whoever's it is",
    description: 'The same as its holder reads at `GET /attacks/{uuid}`.',
    params: uuidParams,
    answer: Type.Array(attackRead, { minItems: 1, maxItems: 1 }),
    errors: ['not_found'],
    entityTag: true,
  },
  {
    ...ofOperator,
    id: 'readAnyAttackPcap',
    path: '/operator/attack/{uuid}/pcap',
    summary: "Read the sampled packets of one attack as a capture file, whoever's it is",
    description: 'The same as its holder reads at `GET /attacks/{uuid}/pcap`.',
    ...capture,
  },
  {
    ...told,
    id: 'recordAttack',
    path: '/operator/attack',
    summary: 'Record an attack that was detected elsewhere',
    description:
      'Start, changes and end of an attack are one record, whatever arrives first; the same report again changes nothing. ' +
      'An attack that ended does not begin again: another one has another `external_id`. Without one the times tell ' +
      'attacks apart: `started_at` more than 15 minutes after the last that was told of an attack begins another one, ' +
      '`ended_at` ends the last attack that began before it, and what is undated is of the one that goes on. When the ' +
      'destination has gone to another account since, what is told is recorded anew, for that account. What is not ' +
      'told stays as it was; of `pps` and `bps` the highest stays as the peak. Times up to 5 minutes ahead of this clock ' +
      'count as now, later ones are refused. An attack that nothing is told of for 24 hours is ended, with that reason, ' +
      'until more is told. Nothing is mitigated because of a report.',
    body: attackReport,
    example: {
      body: {
        source: 'scrubbing-centre',
        external_id: 'incident-4711',
        dst: '203.0.113.7',
        state: 'started',
        started_at: '2026-01-31T12:00:00Z',
        vectors: ['udp-amplification-dns'],
        pps: 1_250_000,
        bps: 9_800_000_000,
        top_sources: [{ source: '198.51.100.9', share: 0.4 }],
      },
    },
  },
  {
    ...told,
    id: 'recordFastnetmonAttack',
    path: '/operator/attack/fastnetmon',
    summary: 'Record an attack that FastNetMon detected',
    description:
      "Takes the document that FastNetMon passes to web callbacks and notify scripts (per-host alerts), and the text format's " +
      'arguments and details as `deploy/fastnetmon/levee-notify.sh` passes them on. `attack_uuid` tells attacks apart; the ' +
      'text format has none: there an `unban` ends the ongoing attack on that address. Outgoing attacks are refused: they ' +
      'are not on a protected address.',
    body: fastnetmonReport,
    example: {
      body: {
        ip: '203.0.113.7',
        action: 'ban',
        alert_scope: 'host',
        attack_details: {
          attack_uuid: '7d4f0d52-9c0b-4b53-8d7a-2f5f8f5c1b11',
          attack_direction: 'incoming',
          attack_protocol: 'udp',
          peak_attack_power: 812_000,
          total_incoming_pps: 812_000,
          total_incoming_traffic: 640_000_000,
        },
      },
    },
  },
];
