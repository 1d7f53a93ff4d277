/**
 * Guarantees of the interface's description: each example in it works. The requests are sent as they stand to a real
 * server, in an order in which each can succeed; the answers are held against what is declared.
 */
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { errorBody, errors } from '@levee/contract/errors.ts';
import { answerExample, errorExample } from '@levee/contract/openapi-examples.ts';
import { pcapMedia } from '@levee/contract/operation.ts';
import { compileAnswerCheck } from '@levee/server/http/schema-check.ts';
import { type Story, tellStory } from './examples/story.ts';

let story: Story;
before(async () => {
  story = await tellStory();
});

test('every served operation carries out its own example, and answers as declared', () => {
  assert.ok(story.told.length >= 20);
  const wrong = story.told.flatMap(({ operation, sent, status, answer }) => {
    const fault = status === 200 ? compileAnswerCheck(operation.answer)(answer) : 'is refused';
    return fault === undefined ? [] : [`${operation.id}: ${sent} → ${status} ${JSON.stringify(answer)} ${fault}`];
  });
  assert.deepEqual(wrong, []);
});

test("every parameter's example is taken", () => {
  assert.ok(story.parameters.length >= 10);
  const refused = story.parameters.filter(({ status }) => status !== 200);
  assert.deepEqual(refused, []);
});

test('every served operation has an example of its answer that its schema allows', () => {
  // Octets are no example that anyone can read.
  const readable = story.told.filter(({ operation }) => operation.answerMedia !== pcapMedia);
  const wrong = readable.flatMap(({ operation }) => {
    const example = answerExample(operation);
    const fault = example === undefined ? 'has none' : compileAnswerCheck(operation.answer)(example);
    return fault === undefined ? [] : [`${operation.id} ${fault}`];
  });
  assert.deepEqual(wrong, [], 'run `node tools/record-answers.ts`');
});

test('every error is answered as the description shows it', () => {
  assert.ok(story.errors.length >= 14);
  const check = compileAnswerCheck(errorBody);
  for (const { code, status, answer, normalised } of story.errors) {
    const { error, request_id } = answer as { error: string; request_id?: string };
    assert.deepEqual([error, status], [code, errors[code].status]);
    assert.equal(check(answer), undefined);
    const example = { ...(errorExample(code) as object), request_id };
    assert.deepEqual(example, { ...(normalised as object), request_id }, 'run `node tools/record-answers.ts`');
  }
});
