/**
 * Accounts and keys on the wire: providers, users, API keys, who the caller is. Owns the shapes; an answer never
 * holds a password or, after its creation, a key.
 */
import Type from 'typebox';
import { inWords } from './in-words.ts';
import { ruleListQuery } from './list.ts';
import { accountUuid, timestamp, uuid } from './object.ts';
import { quotas } from './quota.ts';

const subnetText = Type.String({ maxLength: 64, description: 'An address, or a subnet in CIDR form.' });

export const subnets = (minItems: number) =>
  Type.Array(subnetText, {
    minItems,
    maxItems: 1024,
    description: 'Subnets; an entry inside another of the list is an error.',
    examples: [['203.0.113.0/28', '2001:db8:7::/64']],
  });

export const accountName = Type.String({
  minLength: 1,
  maxLength: 128,
  pattern: '^[^\\u0000-\\u001f\\u007f-\\u009f]+$',
  ...inWords('1 to 128 characters without control characters'),
  description: '1 to 128 characters, no control characters.',
});

export const username = Type.String({
  minLength: 3,
  maxLength: 64,
  pattern: '^[a-z0-9._-]+$',
  ...inWords("3 to 64 of a–z, 0–9, '.', '_' and '-'"),
  description: 'Unique in the provider.',
  examples: ['alice'],
});

export const email = Type.String({
  minLength: 3,
  maxLength: 254,
  pattern: '^[^\\s@<>()\\[\\],;:"\\\\\\u0000-\\u001f\\u007f]+@[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$',
  ...inWords('an email address such as alice@example.net, without spaces, quotes and brackets'),
  description: 'Unique in the installation, compared without case.',
  examples: ['alice@example.net'],
});

export const password = Type.String({
  minLength: 12,
  maxLength: 256,
  description: 'Not one of the commonly used ones. Stored as an argon2id hash only.',
  examples: ['correct-horse-battery-staple'],
});

export const providerCreate = Type.Object(
  { name: accountName, prefixes: subnets(0) },
  { $id: 'ProviderCreate', additionalProperties: false },
);

export const provider = Type.Object(
  { uuid, name: Type.String(), prefixes: Type.Array(Type.String()), created_at: timestamp, updated_at: timestamp },
  { $id: 'Provider', additionalProperties: false },
);

export const providerChange = Type.Object(
  {
    name: Type.Optional(accountName),
    add_prefixes: Type.Optional(subnets(1)),
    remove_prefixes: Type.Optional(subnets(1)),
  },
  { $id: 'ProviderChange', additionalProperties: false, minProperties: 1 },
);

export const userCreate = Type.Object(
  { username, email, password, ips: subnets(0), name: Type.Optional(accountName) },
  { $id: 'UserCreate', additionalProperties: false },
);

export const userIps = Type.Object(
  { user_uuid: accountUuid, ips: subnets(1) },
  { $id: 'UserIps', additionalProperties: false },
);

export const passwordReset = Type.Object({ email, password }, { $id: 'PasswordReset', additionalProperties: false });

const userState = Type.Enum(['active', 'marked_for_deletion'], {
  description:
    '`marked_for_deletion`: it is deleted, holds no address and has no key; it is shown until the last of its objects is ' +
    'gone everywhere.',
});

const userFields = {
  uuid,
  state: userState,
  provider_uuid: accountUuid,
  username: Type.String(),
  email: Type.String(),
  name: Type.String(),
  ips: Type.Array(Type.String(), { description: 'The subnets that the user may act on.' }),
  created_at: timestamp,
  updated_at: timestamp,
};

export const user = Type.Object(userFields, { $id: 'User', additionalProperties: false });

const warning = Type.Object(
  {
    code: Type.Literal('provider_objects'),
    kind: Type.Enum(['firewall_rule', 'filter', 'tunnel', 'rdns']),
    count: Type.Integer({ minimum: 1 }),
    uuids: Type.Array(Type.String({ format: 'uuid' }), { description: 'Of the 20 oldest, where there are more.' }),
    message: Type.String({ description: 'What that means for the user.' }),
  },
  { additionalProperties: false },
);

export const userGranted = Type.Object(
  {
    ...userFields,
    warnings: Type.Optional(
      Type.Array(warning, {
        description:
          'What the provider itself has on the addresses given, by kind; absent: nothing. It stays, and the user neither ' +
          'sees nor removes it.',
      }),
    ),
  },
  { $id: 'UserGranted', additionalProperties: false },
);

const removedCount = Type.Integer({ minimum: 0 });

const removed = Type.Object(
  { firewall_rules: removedCount, filters: removedCount, tunnels: removedCount, rdns: removedCount },
  {
    additionalProperties: false,
    description: 'How many objects of the user were marked for deletion because of this.',
  },
);

export const userAfterRemoval = Type.Object(
  {
    ...userFields,
    removed,
    tunnels_changed: Type.Integer({
      minimum: 0,
      description: 'Tunnels that let go of the removed subnets and keep their others.',
    }),
  },
  { $id: 'UserAfterRemoval', additionalProperties: false },
);

export const userDeleted = Type.Object(
  {
    uuid,
    state: Type.Literal('marked_for_deletion'),
    message: Type.String({ description: 'Says that the user is marked for deletion.' }),
    removed,
  },
  { $id: 'UserDeleted', additionalProperties: false },
);

export const providerChanged = Type.Object(
  {
    ...provider.properties,
    removed: Type.Object(
      { ...removed.properties, flowrules: removedCount },
      { additionalProperties: false, description: 'How many objects of the provider itself were marked for deletion.' },
    ),
    tunnels_changed: Type.Integer({ minimum: 0, description: 'Of the provider itself, that keep other subnets.' }),
  },
  { $id: 'ProviderChanged', additionalProperties: false },
);

export const userListQuery = Type.Object(
  {
    username: Type.Optional(
      Type.String({
        maxLength: 64,
        description: 'Only the user that has exactly this name; a deleted one has none.',
        examples: ['alice'],
      }),
    ),
    email: Type.Optional(
      Type.String({
        maxLength: 254,
        description: 'Only the user that has this address, compared without case; a deleted one has none.',
        examples: ['alice@example.net'],
      }),
    ),
    dst: Type.Optional(
      Type.String({ maxLength: 64, description: 'Only users with a subnet that covers it or lies inside it.' }),
    ),
    state: Type.Optional(Type.Enum(['active', 'marked_for_deletion'], { description: 'Only those in it.' })),
    limit: ruleListQuery.properties.limit,
    cursor: ruleListQuery.properties.cursor,
  },
  { additionalProperties: false },
);

export const message = Type.Object(
  { message: Type.String() },
  { $id: 'Message', additionalProperties: false, description: 'What was done.' },
);

export const keySources = Type.Array(subnetText, {
  minItems: 1,
  maxItems: 64,
  description: 'Addresses that the key may be used from; absent: anywhere.',
});

export const keyOperations = Type.Array(
  Type.String({
    minLength: 1,
    maxLength: 64,
    pattern: '^[A-Za-z]+$',
    ...inWords("an operation's name, of letters"),
    examples: ['listAttacks'],
  }),
  {
    minItems: 1,
    maxItems: 256,
    uniqueItems: true,
    description:
      'The only operations that the key may call, as this document names them (`operationId`); absent: all that are open ' +
      "to its account's role. For a program that has one task.",
  },
);

export const apiKeyCreate = Type.Object(
  {
    account_uuid: Type.Optional(
      Type.String({ format: 'uuid', description: "Whose key it becomes; absent: the caller's own." }),
    ),
    name: accountName,
    expires_at: Type.Optional(
      Type.String({ format: 'date-time', maxLength: 40, description: 'RFC 3339, in the future.' }),
    ),
    read_only: Type.Optional(Type.Boolean({ default: false, description: 'Refused by every operation that writes.' })),
    sources: Type.Optional(keySources),
    operations: Type.Optional(keyOperations),
    rate_limit: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 1_000_000,
        description:
          "Requests a minute; absent: as many as the installation allows every key. More than one's own key may make " +
          'can be given by an operator alone. Has no effect where the installation limits nothing.',
      }),
    ),
  },
  { $id: 'ApiKeyCreate', additionalProperties: false },
);

const apiKeyFields = {
  uuid,
  account_uuid: accountUuid,
  name: Type.String(),
  read_only: Type.Boolean(),
  sources: Type.Optional(Type.Array(Type.String())),
  operations: Type.Optional(
    Type.Array(Type.String(), { description: 'The only operations that it may call; absent: without that limit.' }),
  ),
  rate_limit: Type.Optional(
    Type.Integer({ minimum: 1, description: 'Requests a minute, where it has a limit of its own.' }),
  ),
  expires_at: Type.Optional(timestamp),
  last_used_at: Type.Optional(timestamp),
  revoked_at: Type.Optional(timestamp),
  created_at: timestamp,
};

export const apiKey = Type.Object(apiKeyFields, { $id: 'ApiKey', additionalProperties: false });

export const apiKeyCreated = Type.Object(
  { ...apiKeyFields, key: Type.String({ description: 'The key itself: shown this once, never again.' }) },
  { $id: 'ApiKeyCreated', additionalProperties: false },
);

export const apiKeyRevoked = Type.Object(
  { ...apiKeyFields, message: Type.String() },
  { $id: 'ApiKeyRevoked', additionalProperties: false },
);

export const whoami = Type.Object(
  {
    account: Type.Object(
      {
        uuid,
        role: Type.Enum(['operator', 'provider', 'user']),
        name: Type.String(),
        provider_uuid: Type.Optional(accountUuid),
        username: Type.Optional(Type.String()),
        email: Type.Optional(Type.String()),
        subnets: Type.Array(Type.String(), { description: "A provider's prefixes, a user's ips." }),
      },
      { additionalProperties: false },
    ),
    api_key: apiKey,
    quotas: Type.Optional(quotas),
  },
  { $id: 'WhoAmI', additionalProperties: false },
);
