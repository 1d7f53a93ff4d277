/**
 * Owns `npm run bench -- name`: finds bench/<name>.ts and becomes it. Without a name it lists what there is, each with
 * the first sentence of its opening comment.
 */
import { globSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { pathToFileURL } from 'node:url';

const folder = join(import.meta.dirname, '..', 'bench');
const names = globSync('*.ts', { cwd: folder })
  .filter((file) => !file.endsWith('.test.ts'))
  .map((file) => basename(file, '.ts'))
  .sort();
const [name, ...rest] = process.argv.slice(2);

if (name !== undefined && names.includes(name)) {
  const file = join(folder, `${name}.ts`);
  process.argv = [process.execPath, file, ...rest];
  await import(pathToFileURL(file).href);
} else {
  if (name !== undefined) console.error(`there is no bench/${name}.ts`);
  for (const each of names) console.log(`npm run bench -- ${each.padEnd(12)} ${firstSentence(each)}`);
  process.exitCode = name === undefined ? 0 : 1;
}

function firstSentence(benchName: string): string {
  const comment = /\/\*\*([\s\S]*?)\*\//.exec(readFileSync(join(folder, `${benchName}.ts`), 'utf8'))?.[1] ?? '';
  const text = comment
    .replace(/^\s*\* ?/gm, ' ')
    .replace(/\s+/g, ' ')
    .trim();
  return /^.*?[.:](?= |$)/.exec(text)?.[0] ?? text;
}
