/** Path and query parameters that several operations share: identifiers, filters of lists, pages. */
import Type from 'typebox';

export const uuidParams = Type.Object({ uuid: Type.String({ description: 'Identifier of the object.' }) });

const page = {
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 1000, description: 'Objects in this answer; absent: all of them.' }),
  ),
  cursor: Type.Optional(
    Type.String({ maxLength: 64, description: 'Where to go on, from the `Link` header of the previous page.' }),
  ),
};

const filters = {
  dst: Type.Optional(
    Type.String({ maxLength: 64, description: 'Only objects whose destination covers it or lies inside it.' }),
  ),
  state: Type.Optional(
    Type.Enum(['pending', 'active', 'disabled', 'failed', 'marked_for_deletion'], { description: 'Only those in it.' }),
  ),
};

export const ruleListQuery = Type.Object({ ...filters, ...page }, { additionalProperties: false });

export const providerRuleListQuery = Type.Object(
  {
    ...filters,
    user_uuid: Type.Optional(
      Type.String({ format: 'uuid', description: "Only this account's: a user of the provider, or the provider." }),
    ),
    ...page,
  },
  { additionalProperties: false },
);

export const noQuery = Type.Object({}, { additionalProperties: false });
