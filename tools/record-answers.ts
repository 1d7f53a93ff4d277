/**
 * Writes the examples of answers in the interface's description: from a run of every operation's own example against a
 * real server. To be run when an operation's answer changes its shape; a test says when. `npm run generate` then makes
 * the description of it.
 */
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pcapMedia } from '@levee/contract/operation.ts';
import { tellStory } from '../e2e/examples/story.ts';

const root = join(import.meta.dirname, '..');
const file = join(root, 'packages', 'contract', 'src', 'generated', 'recorded-answers.ts');

const { told, errors } = await tellStory();
const failed = told.filter(({ status }) => status !== 200);
for (const { operation, sent, status, answer } of failed) {
  console.error(`${operation.id}: ${sent}\n  → ${status} ${JSON.stringify(answer)}`);
}
const answers = told.filter(
  ({ operation, status }) =>
    status === 200 && operation.example?.answer === undefined && operation.answerMedia !== pcapMedia,
);
const byId = answers.map(({ operation, normalised }): [string, unknown] => [operation.id, normalised]);
const byCode = errors.map(({ code, normalised }): [string, unknown] => [code, normalised]);
const sorted = (entries: [string, unknown][]) =>
  JSON.stringify(Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1))), null, 2);
writeFileSync(
  file,
  '// Made by `node tools/record-answers.ts` from a run against a real server; not to be edited.\n' +
    `export const recordedAnswers: Readonly<Record<string, unknown>> = ${sorted(byId)};\n` +
    `export const recordedErrors: Readonly<Record<string, unknown>> = ${sorted(byCode)};\n`,
);
console.log(`wrote ${byId.length} answers and ${byCode.length} errors`);
const generated = spawnSync(process.execPath, [join(root, 'tools', 'generate.ts')], { stdio: 'inherit' });
process.exitCode = failed.length > 0 ? 1 : (generated.status ?? 1);
