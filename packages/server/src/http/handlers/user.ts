/** From requests about a provider's users to commands, and from rows to answers. Decides nothing itself. */
import { parseSubnets } from '@levee/core/account/subnets.ts';
import type { Prefix } from '@levee/core/net/prefix.ts';
import { formatPrefix } from '@levee/core/net/prefix-text.ts';
import type { Problem } from '@levee/core/problem.ts';
import type { AccountWithSubnets } from '../../commands/account-row.ts';
import { addIps } from '../../commands/add-ips.ts';
import type { AuditEntry } from '../../commands/audit.ts';
import { createUser } from '../../commands/create-user.ts';
import { deleteIps } from '../../commands/delete-ips.ts';
import { hashPassword, passwordProblem } from '../../commands/password.ts';
import { resetPassword } from '../../commands/reset-password.ts';
import { newUuid } from '../../store/new-uuid.ts';
import { type Call, type Handler, isSound, type Judged, judgedBy, membersOf } from '../call.ts';

const subnetBounds = { minimum: 0, maximum: 1024 };

export function userJson(account: AccountWithSubnets): object {
  return {
    uuid: account.uuid,
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

export function userHandlers(): Record<string, Handler> {
  return {
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
          const audit = [userEntry(undefined, outcome.value)];
          return { ok: true, value: { render: () => JSON.stringify(userJson(outcome.value)), audit } };
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
          const { before, account } = outcome.value;
          const audit = [userEntry(before, account)];
          return { ok: true, value: { render: () => JSON.stringify(userJson(account)), audit } };
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
          const { before, account, removedRules, change } = outcome.value;
          const json = { ...userJson(account), removed: { firewall_rules: removedRules } };
          const cursor = change && { xid: change.change_xid, position: change.change_position };
          const audit = [userEntry(before, account)];
          return { ok: true, value: { change: cursor, render: () => JSON.stringify(json), audit } };
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
