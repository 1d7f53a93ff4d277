/**
 * The rival: the same changes, compiled by the same compiler, handed straight to the kernel of the namespace that this
 * process was started in, one at a time, nothing else going on. Prints JSON: milliseconds of each commit.
 *
 * commit-time.ts <rules> <changes>
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { parseRule } from '@levee/core/firewall/parse.ts';
import type { Rule } from '@levee/core/firewall/rule.ts';
import { createCompiler, tableName } from '@levee/core/nftables/compiler.ts';
import { chooseKernel } from '@levee/edge/drivers/nft/choose.ts';
import { changeOf, type Fields, rulesOf, rulesPerDestination } from './workload.ts';

const [rules = 0, changes = 0] = process.argv.slice(2).map(Number);
const destinations = rules / rulesPerDestination;
let sequence = 0;

function ruleOf(fields: Fields): Rule {
  const parsed = parseRule(fields, { uuid: randomUUID(), sequence: ++sequence });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  return parsed.rule;
}

function* all(): Generator<Rule> {
  for (let index = 0; index < destinations; index++) for (const fields of rulesOf(index)) yield ruleOf(fields);
}

const choice = await chooseKernel(tableName);
if (!choice.ok) throw new Error(choice.reason);
const { driver } = choice.access;
const mark = () => sequence.toString(16).padStart(16, '0');

const apply = async (text: string) => {
  const result = await driver.apply(text);
  if (!result.ok) throw new Error(JSON.stringify(result).slice(0, 500));
};
const compiler = createCompiler();
const load = compiler.replace(all(), mark());
const loadedAt = performance.now();
await apply(load.text);
load.commit();
const loadMilliseconds = performance.now() - loadedAt;

const commits: number[] = [];
for (let number = 0; number < changes; number++) {
  const plan = compiler.change({ upsert: [ruleOf(changeOf(number, destinations))], remove: [] }, mark());
  const startedAt = performance.now();
  await apply(plan.text);
  commits.push(performance.now() - startedAt);
  plan.commit();
  await delay(5);
}
console.log(JSON.stringify({ loadMilliseconds, commits }));
await driver.close();
process.exit(0);
