/**
 * The turn that whoever counts FlowSpec routes takes, or lets one more of them be announced: so two do not both take the last
 * one. Taken before any flowrule's row is locked, as who has it may lock others' rows; kept until the transaction ends.
 */
export const budgetTurn = {
  name: 'budget_turn',
  text: `select pg_advisory_xact_lock(hashtextextended('flowspec budget', 0))`,
};
