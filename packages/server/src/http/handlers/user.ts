/** From requests about a provider's users to commands, and from rows to answers. Decides nothing itself. */
import { parseSubnets } from '@levee/core/account/subnets.ts';
import type { Prefix } from '@levee/core/net/prefix.ts';
import { formatPrefix } from '@levee/core/net/prefix-text.ts';
import type { Problem } from '@levee/core/problem.ts';
import type pg from 'pg';
import type { AccountWithSubnets } from '../../commands/account-row.ts';
import { addIps } from '../../commands/add-ips.ts';
import type { AuditEntry } from '../../commands/audit.ts';
import { createUser } from '../../commands/create-user.ts';
import { deleteIps } from '../../commands/delete-ips.ts';
import { deleteUser } from '../../commands/delete-user.ts';
import { executorOf } from '../../commands/executor.ts';
import { refuse } from '../../commands/outcome.ts';
import { hashPassword, passwordProblem } from '../../commands/password.ts';
import type { Overlapped, OverlappedKind } from '../../commands/provider-objects.ts';
import { findUsers, readUser, type UserRow, userChunks } from '../../commands/read-users.ts';
import { resetPassword } from '../../commands/reset-password.ts';
import type { WithdrawnSpace } from '../../commands/withdraw-space.ts';
import type { Cursor } from '../../store/cursor.ts';
import { newUuid } from '../../store/new-uuid.ts';
import type { KeyRing } from '../authentication.ts';
import { type Call, type Handler, isSound, type Judged, judgedBy, membersOf } from '../call.ts';
import { answerList, judgeList, type ListFilter, type Listing } from '../list-answer.ts';
import { isUuid } from '../uuid-text.ts';

const subnetBounds = { minimum: 0, maximum: 1024 };

function stateOf({ deleted }: AccountWithSubnets): string {
  return deleted ? 'marked_for_deletion' : 'active';
}

export function userJson(account: AccountWithSubnets): object {
  return {
    uuid: account.uuid,
    state: stateOf(account),
    provider_uuid: account.provider_uuid,
    username: account.username,
    email: account.email,
    name: account.name,
    ips: account.subnets,
    created_at: account.created_at.toISOString(),
    updated_at: account.updated_at.toISOString(),
  };
}

function userEntry(before: AccountWithSubnets | undefined, after: AccountWithSubnets | undefined): AuditEntry {
  const { uuid, provider_uuid } = (after ?? before) as AccountWithSubnets;
  return {
    kind: 'account',
    uuid,
    ownerUuid: uuid,
    providerUuid: provider_uuid,
    before: before && userJson(before),
    after: after && userJson(after),
  };
}

export interface UserServices {
  readonly pool: pg.Pool;
  readonly keys: Pick<KeyRing, 'forget'>;
}

export function userHandlers({ pool, keys }: UserServices): Record<string, Handler> {
  const listing: Listing<UserRow> = {
    chunks: (scope) => userChunks(pool, scope),
    render: (row) => ({ state: stateOf(row), text: JSON.stringify(userJson(row)) }),
  };
  return {
    listUsers: {
      judge: judgeList,
      async read(call: Call, filter: ListFilter) {
        const { username, email, state } = call.query as { username?: string; email?: string; state?: string };
        const providerUuid = call.caller.accountUuid;
        if (username === undefined && email === undefined) return answerList(listing, call, { providerUuid }, filter);
        const users = await findUsers(executorOf(pool), providerUuid, { dst: undefined, ...filter, username, email });
        const wanted = users.filter((user) => state === undefined || stateOf(user) === state);
        return { ok: true, answer: { body: JSON.stringify(wanted.map(userJson)) } };
      },
    },
    readUser: {
      async read(call: Call) {
        const uuid = call.params.uuid ?? '';
        if (!isUuid(uuid)) return refuse('not_found');
        const account = await readUser(executorOf(pool), call.caller.accountUuid, uuid);
        if (account === undefined) return refuse('not_found');
        return { ok: true, answer: { body: JSON.stringify(userJson(account)) } };
      },
    },
    deleteUser: {
      write: {
        async run(call, executor) {
          const uuid = call.params.uuid ?? '';
          if (!isUuid(uuid)) return refuse('not_found');
          const outcome = await deleteUser(executor, call.caller.accountUuid, uuid);
          if (!outcome.ok) return outcome;
          const { before, withdrawn, keys: revoked } = outcome.value;
          const body = JSON.stringify({
            uuid: uuid.toLowerCase(),
            state: 'marked_for_deletion',
            message: 'The user is marked for deletion.',
            removed: removedJson(withdrawn),
          });
          const audit =
            before === undefined ? [] : [userEntry(before, undefined), ...(withdrawn?.audit ?? []), ...revoked];
          return {
            ok: true,
            value: {
              change: cursorOf(withdrawn),
              render: () => body,
              committed: () => {
                for (const key of revoked) keys.forget(key.uuid);
              },
              audit,
            },
          };
        },
      },
    },
    createUser: {
      write: {
        judge(call, found) {
          const { ips, password, username, email } = membersOf(call.body);
          const problems: Problem[] = [];
          const subnets = judgeSubnets(ips, problems);
          if (isSound(found, '/password')) problems.push(...judgePassword(password, [username, email]));
          return judgedBy(problems, { password, subnets });
        },
        async prepare({ password, subnets }: { password: string; subnets: readonly Prefix[] }) {
          return { passwordHash: await hashPassword(password), subnets: subnets.map(formatPrefix) };
        },
        async run(call, executor, { passwordHash, subnets }: { passwordHash: string; subnets: readonly string[] }) {
          const body = call.body as { username: string; email: string; name?: string };
          const outcome = await createUser(executor, {
            uuid: newUuid(),
            providerUuid: call.caller.accountUuid,
            username: body.username,
            email: body.email,
            name: body.name ?? body.username,
            passwordHash,
            subnets,
          });
          if (!outcome.ok) return outcome;
          const { account, overlapped } = outcome.value;
          const json = { ...userJson(account), ...warningsOf(overlapped) };
          const audit = [userEntry(undefined, account)];
          return { ok: true, value: { render: () => JSON.stringify(json), audit } };
        },
      },
    },
    addUserIps: {
      write: {
        judge: judgeIps,
        async run(call, executor, subnets: readonly Prefix[]) {
          const { user_uuid } = call.body as { user_uuid: string };
          const outcome = await addIps(executor, call.caller.accountUuid, user_uuid, subnets.map(formatPrefix));
          if (!outcome.ok) return outcome;
          const { before, account, overlapped } = outcome.value;
          const json = { ...userJson(account), ...warningsOf(overlapped) };
          const audit = [userEntry(before, account)];
          return { ok: true, value: { render: () => JSON.stringify(json), audit } };
        },
      },
    },
    deleteUserIps: {
      write: {
        judge: judgeIps,
        async run(call, executor, subnets: readonly Prefix[]) {
          const { user_uuid } = call.body as { user_uuid: string };
          const outcome = await deleteIps(executor, call.caller.accountUuid, user_uuid, subnets);
          if (!outcome.ok) return outcome;
          const { before, account, withdrawn } = outcome.value;
          const json = {
            ...userJson(account),
            removed: removedJson(withdrawn),
            tunnels_changed: withdrawn.tunnelsChanged,
          };
          const audit = [userEntry(before, account), ...withdrawn.audit];
          return { ok: true, value: { change: cursorOf(withdrawn), render: () => JSON.stringify(json), audit } };
        },
      },
    },
    resetUserPassword: {
      write: {
        judge(call, found) {
          const { email, password } = membersOf(call.body);
          return judgedBy(isSound(found, '/password') ? judgePassword(password, [email]) : [], password);
        },
        prepare: (password: string) => hashPassword(password),
        async run(call, executor, passwordHash: string) {
          const { email } = call.body as { email: string };
          const outcome = await resetPassword(executor, call.caller.accountUuid, email, passwordHash);
          if (!outcome.ok) return outcome;
          const body = JSON.stringify({ message: 'The password has been reset.' });
          const { accountUuid: providerUuid } = call.caller;
          const { userUuid: uuid } = outcome.value;
          const audit = [{ kind: 'account', uuid, ownerUuid: uuid, providerUuid } as const];
          return { ok: true, value: { render: () => body, audit } };
        },
      },
    },
  };
}

const consequences: Readonly<Record<OverlappedKind, readonly [one: string, many: string, consequence: string]>> = {
  firewall_rule: ['firewall rule', 'firewall rules', "stay in force beside the user's; the user cannot remove them"],
  filter: ['filter', 'filters', "stay in force beside the user's; the user cannot remove them"],
  tunnel: ['tunnel', 'tunnels', 'go on routing them; the user can have no tunnel for them until the provider lets go'],
  rdns: ['rDNS record', 'rDNS records', 'stay until the user changes or deletes them, or the provider does'],
};

function warningsOf(overlapped: readonly Overlapped[]): object {
  if (overlapped.length === 0) return {};
  const warnings = overlapped.map(({ kind, count, uuids }) => {
    const [one, many, consequence] = consequences[kind];
    const message = `The provider's own on these addresses, ${count} ${count === 1 ? one : many}, ${consequence}.`;
    return { code: 'provider_objects', kind, count, uuids, message };
  });
  return { warnings };
}

/** Without a change nothing is waited for. */
function cursorOf(withdrawn: WithdrawnSpace | undefined): Cursor | undefined {
  const change = withdrawn?.change;
  return change && { xid: change.change_xid, position: change.change_position };
}

function removedJson(withdrawn: WithdrawnSpace | undefined): object {
  const { firewall_rules = 0, filters = 0, tunnels = 0, rdns = 0 } = withdrawn?.removed ?? {};
  return { firewall_rules, filters, tunnels, rdns };
}

/** Undefined after problems were added. */
function judgeSubnets(ips: unknown, problems: Problem[]): readonly Prefix[] | undefined {
  const parsed = parseSubnets(ips, ['ips'], subnetBounds);
  if (parsed.ok) return parsed.subnets;
  problems.push(...parsed.problems);
  return undefined;
}

function judgeIps(call: Call): Judged {
  const problems: Problem[] = [];
  const subnets = judgeSubnets(membersOf(call.body).ips, problems);
  return judgedBy(problems, subnets);
}

/** `others`: what the password must not be made of, of any type and length as it was received. */
function judgePassword(password: unknown, others: readonly unknown[]): readonly Problem[] {
  if (typeof password !== 'string') return [];
  const texts = others.filter((other) => typeof other === 'string' && other.length <= 256) as string[];
  const weak = passwordProblem(password, texts, '/password');
  return weak === undefined ? [] : [weak];
}
