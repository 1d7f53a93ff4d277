/**
 * Sends every served operation's own example to a real server, in an order in which each can succeed: the operator makes
 * a provider, the provider a user, the user everything else; what deletes comes last. Nothing of a request is made up
 * here but the identifiers that a server chooses. Decides nothing about what is right: it hands back what was answered.
 */
import type { ErrorCode } from '@levee/contract/errors.ts';
import { exampleUuid, headerExamples, parameterExample } from '@levee/contract/openapi-examples.ts';
import type { Operation, Role } from '@levee/contract/operation.ts';
import { operations } from '@levee/contract/operations.ts';
import { type FollowingDetector, followAsDetector } from './detector.ts';
import { meetErrors } from './errors.ts';
import { createNormaliser } from './normalise.ts';
import { type Follower, followAsRouter } from './router.ts';
import { startStage } from './stage.ts';

export interface Told {
  readonly operation: Operation;
  readonly sent: string;
  readonly status: number;
  /** JSON value, or text where the operation answers that. */
  readonly answer: unknown;
  readonly normalised: unknown;
}

export interface Story {
  readonly told: readonly Told[];
  /** The same with one of its query parameters at a time. */
  readonly parameters: readonly { readonly sent: string; readonly status: number; readonly answer: string }[];
  /** By error code. */
  readonly errors: readonly MetError[];
}

export interface MetError {
  readonly code: ErrorCode;
  readonly status: number;
  readonly answer: unknown;
  readonly normalised: unknown;
}

/** Comes first, in this order: the rest needs what these make. */
const opening = ['createProvider', 'createLocation', 'createRouter', 'createRdnsZone', 'createUser', 'addUserIps'];
/** Comes last, in this order: they take away what others need. */
const closing = [
  'replaceFirewallRules',
  'revokeApiKey',
  'deleteUserIps',
  'deleteUser',
  'deleteRdnsZone',
  'deleteRouter',
  'deleteLocation',
  'deleteProvider',
];
const phases: readonly ((operation: Operation) => boolean)[] = [
  ({ method, params, roles }) => method === 'POST' && params === undefined && !roles.includes('user'),
  ({ method, params }) => method === 'POST' && params === undefined,
  ({ method }) => method !== 'DELETE' && method !== 'GET',
  ({ method }) => method === 'GET',
  () => true,
];

export function inOrder(served: readonly Operation[]): readonly Operation[] {
  const phaseOf = (operation: Operation): number => {
    const first = opening.indexOf(operation.id);
    if (first >= 0) return first - opening.length;
    const last = closing.indexOf(operation.id);
    if (last >= 0) return phases.length + last;
    return phases.findIndex((holds) => holds(operation));
  };
  return served.toSorted((a, b) => phaseOf(a) - phaseOf(b));
}

/** Paths of what the detector makes. */
const fromDetector = /^\/(provider\/)?attacks|\/flowrule|^\/operator\/rule\//;

/** Where the object of a path is made, if not by a POST to the path before its parameter. */
const madeAt: Readonly<Record<string, string>> = {
  '/webhook/{uuid}/delivery': '/webhook/{uuid}/test',
};

export async function tellStory(now: () => number = Date.now): Promise<Story> {
  const stage = await startStage();
  const normaliser = createNormaliser(now);
  const keys: Partial<Record<Role, string>> = { operator: stage.operatorKey };
  const made = new Map<string, string>();
  const told: Told[] = [];
  const parameters: { sent: string; status: number; answer: string }[] = [];
  let follower: Follower | undefined;
  let detector: FollowingDetector | undefined;
  let userUuid = exampleUuid;

  const keyFor = ({ roles }: Operation): string => {
    const key = (['user', 'provider', 'operator'] as const)
      .filter((role) => roles.includes(role))
      .map((role) => keys[role]);
    const found = key.find((each) => each !== undefined);
    if (found === undefined) throw new Error('nobody is there yet who may call this operation');
    return found;
  };
  const pathOf = async (operation: Operation): Promise<string> => {
    let path = operation.path;
    for (const [, name = ''] of operation.path.matchAll(/\{(\w+)\}/g)) {
      const before = operation.path.slice(0, operation.path.indexOf(`/{${name}}`));
      let value = made.get(madeAt[before] ?? before);
      if (name === 'account_uuid') value = made.get('/operator/provider');
      else if (name === 'change_uuid') value = await stage.unconfirmedChange(keyFor(operation));
      if (value === undefined) {
        const refused = told.filter(({ status }) => status !== 200).map(({ sent, answer }) => [sent, answer]);
        throw new Error(`nothing was made at ${before} that {${name}} could name; ${JSON.stringify(refused)}`);
      }
      path = path.replace(`{${name}}`, value);
    }
    return path;
  };
  /** In what is sent, the identifier of the examples is the user's. */
  const real = (text: string): string => text.replaceAll(exampleUuid, userUuid);
  const examplesOf = (operation: Operation, required: boolean): [string, string][] => {
    const { properties = {}, required: needed = [] } = operation.query ?? {};
    return Object.entries(properties)
      .filter(([name]) => (needed as readonly string[]).includes(name) === required)
      .map(([name, schema]) => [name, real(String(parameterExample(name, schema as object)))]);
  };
  const play = async (operation: Operation): Promise<void> => {
    // No operation makes an attack with all that a detector tells, nor what comes of it.
    if (fromDetector.test(operation.path) && !made.has('/attacks')) {
      const { attack, flowrule, rule } = await stage.detectedAttack('203.0.113.7');
      made.set('/attacks', attack);
      if (flowrule !== undefined) made.set('/flowrule', flowrule).set('/operator/flowrule', flowrule);
      if (rule !== undefined) made.set('/operator/rule', rule);
    }
    const path = await pathOf(operation);
    const isStream = operation.answerMedia === 'text/event-stream';
    // A stream is asked for what was before, so that it has something to tell.
    const asked = [...examplesOf(operation, true), ...(isStream ? examplesOf(operation, false) : [])];
    const needed = new URLSearchParams(asked).toString();
    const body = operation.example?.body;
    normaliser.sent(body);
    const request = {
      method: operation.method,
      path: needed === '' ? path : `${path}?${needed}`,
      key: keyFor(operation),
      headers: operation.waits ? { prefer: headerExamples.Prefer } : {},
      ...(body !== undefined && { body: real(JSON.stringify(body)) }),
    };
    const { status, text } = await stage.send(request, isStream);
    const isJson = operation.answerMedia === undefined;
    const answer: unknown = isJson ? JSON.parse(text) : text;
    const sent = `${request.method} ${request.path} ${request.body ?? ''}`;
    if (status === 200 && operation.method === 'POST') await remember(operation, answer as { uuid?: string });
    told.push({ operation, sent, status, answer, normalised: normaliser.normalise(answer) });
    const asHeaders: Readonly<Record<string, string>>[] = [
      ...(operation.entityTag ? [{ 'if-none-match': headerExamples['If-None-Match'] }] : []),
      ...(isStream ? [{ 'last-event-id': headerExamples['Last-Event-ID'] }] : []),
    ];
    for (const headers of asHeaders) {
      const reply = await stage.send({ ...request, headers }, isStream);
      parameters.push({ sent: `${sent}${JSON.stringify(headers)}`, status: reply.status, answer: reply.text });
    }
    if (operation.method !== 'GET' || isStream) return;
    for (const [name, value] of examplesOf(operation, false)) {
      const query = new URLSearchParams([...examplesOf(operation, true), [name, value]]);
      const reply = await stage.send({ ...request, path: `${path}?${query}` }, false);
      parameters.push({ sent: `GET ${path}?${query}`, status: reply.status, answer: reply.text });
    }
  };
  const remember = async (
    operation: Operation,
    answer: { uuid?: string; enrollment_token?: string },
  ): Promise<void> => {
    if (answer.uuid === undefined) return;
    made.set(operation.path, answer.uuid);
    if (operation.id === 'createProvider') keys.provider = await stage.keyOf(answer.uuid);
    if (operation.id === 'createUser') {
      userUuid = answer.uuid;
      normaliser.bind(userUuid);
      keys.user = await stage.keyOf(userUuid);
    }
    if (operation.id === 'createDetector') {
      detector = await followAsDetector(stage.address, String((answer as { key?: string }).key));
    }
    if (operation.id === 'createRouter') {
      follower = await followAsRouter(stage.address, String(answer.enrollment_token), stage.filterKinds);
    }
  };

  const stumble = async (): Promise<readonly MetError[]> => {
    const { user: userKey, provider: providerKey } = keys;
    if (userKey === undefined || providerKey === undefined) throw new Error('no provider and user were made');
    const met = await meetErrors({ stage, userUuid, userKey, providerKey });
    return [...met].map(([code, { status, text }]) => {
      const answer: unknown = JSON.parse(text);
      return { code, status, answer, normalised: normaliser.normalise(answer) };
    });
  };

  try {
    const order = inOrder(operations.filter(({ method, path }) => stage.serves(method, path)));
    let errors: readonly MetError[] = [];
    for (const operation of order) {
      const isFirstEnd = errors.length === 0 && (operation.method === 'DELETE' || closing.includes(operation.id));
      if (isFirstEnd) errors = await stumble();
      try {
        await play(operation);
      } catch (error) {
        throw new Error(`${operation.id}: its example could not be sent: ${(error as Error).message}`, {
          cause: error,
        });
      }
    }
    return { told, parameters, errors };
  } finally {
    await follower?.stop();
    await detector?.stop();
    await stage.stop();
  }
}
