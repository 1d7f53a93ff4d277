/** From requests about a provider's users to commands, and from rows to answers. Decides nothing itself. */
import { parseSubnets } from '@levee/core/account/subnets.ts';
import { formatPrefix } from '@levee/core/net/prefix-text.ts';
import type { AccountWithSubnets } from '../../commands/account-row.ts';
import { addIps } from '../../commands/add-ips.ts';
import { createUser } from '../../commands/create-user.ts';
import { deleteIps } from '../../commands/delete-ips.ts';
import { refuse } from '../../commands/outcome.ts';
import { hashPassword, passwordProblem } from '../../commands/password.ts';
import { resetPassword } from '../../commands/reset-password.ts';
import { newUuid } from '../../store/new-uuid.ts';
import type { Handler } from '../call.ts';

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

export function userHandlers(): Record<string, Handler> {
  return {
    createUser: {
      write: {
        async prepare(call) {
          const body = call.body as { username: string; email: string; password: string; ips: unknown };
          const subnets = parseSubnets(body.ips, ['ips'], subnetBounds);
          const weak = passwordProblem(body.password, [body.username, body.email], '/password');
          const problems = [...(subnets.ok ? [] : subnets.problems), ...(weak === undefined ? [] : [weak])];
          if (!subnets.ok || problems.length > 0) return refuse('validation_failed', ...problems);
          const passwordHash = await hashPassword(body.password);
          return { ok: true, value: { passwordHash, subnets: subnets.subnets.map(formatPrefix) } };
        },
        async run(call, executor, prepared) {
          const body = call.body as { username: string; email: string; name?: string };
          const { passwordHash, subnets } = prepared as { passwordHash: string; subnets: string[] };
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
          return { ok: true, value: { render: () => JSON.stringify(userJson(outcome.value)) } };
        },
      },
    },
    addUserIps: {
      write: {
        async run(call, executor) {
          const body = call.body as { user_uuid: string; ips: unknown };
          const parsed = parseSubnets(body.ips, ['ips'], subnetBounds);
          if (!parsed.ok) return refuse('validation_failed', ...parsed.problems);
          const subnets = parsed.subnets.map(formatPrefix);
          const outcome = await addIps(executor, call.caller.accountUuid, body.user_uuid, subnets);
          if (!outcome.ok) return outcome;
          return { ok: true, value: { render: () => JSON.stringify(userJson(outcome.value)) } };
        },
      },
    },
    deleteUserIps: {
      write: {
        async run(call, executor) {
          const body = call.body as { user_uuid: string; ips: unknown };
          const parsed = parseSubnets(body.ips, ['ips'], subnetBounds);
          if (!parsed.ok) return refuse('validation_failed', ...parsed.problems);
          const outcome = await deleteIps(executor, call.caller.accountUuid, body.user_uuid, parsed.subnets);
          if (!outcome.ok) return outcome;
          const { account, removedRules, change } = outcome.value;
          const json = { ...userJson(account), removed: { firewall_rules: removedRules } };
          const cursor = change && { xid: change.change_xid, position: change.change_position };
          return { ok: true, value: { change: cursor, render: () => JSON.stringify(json) } };
        },
      },
    },
    resetUserPassword: {
      write: {
        async prepare(call) {
          const { email, password } = call.body as { email: string; password: string };
          const weak = passwordProblem(password, [email], '/password');
          if (weak !== undefined) return refuse('validation_failed', weak);
          return { ok: true, value: await hashPassword(password) };
        },
        async run(call, executor, prepared) {
          const { email } = call.body as { email: string };
          const outcome = await resetPassword(executor, call.caller.accountUuid, email, String(prepared));
          if (!outcome.ok) return outcome;
          const body = JSON.stringify({ message: 'The password has been reset.' });
          return { ok: true, value: { render: () => body } };
        },
      },
    },
  };
}
