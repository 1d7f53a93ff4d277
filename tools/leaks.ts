/**
 * Owns finding what must not leave a developer's machine in a commit: paths of that machine, its registry,
 * secrets. Looks at what git tracks or would add.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

/** Folders that only exist where somebody builds. */
const buildFolders = ['work', 'workspace', 'workspaces', 'builds', 'Users', 'home/[a-z][a-z0-9_-]*'];
const patterns: readonly [RegExp, string][] = [
  [new RegExp(`(?<![\\w./:}-])/(?:${buildFolders.join('|')})/(?=[\\w.-])`), 'a path of a build machine'],
  [/-----BEGIN [A-Z ]*PRIVATE KEY-----/, 'a private key'],
  [/"resolve[d]": "https?:/, 'the address of a registry'],
  [/\b_authToken\s*=/, 'a token of a registry'],
];

/** `file:line: what`, for everything found. */
export function findLeaks(root: string): string[] {
  const listed = spawnSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
    cwd: root,
    encoding: 'utf8',
    maxBuffer: 64 << 20,
  });
  if (listed.status !== 0) throw new Error(`git ls-files failed: ${listed.stderr || listed.error?.message}`);
  const found: string[] = [];
  for (const file of listed.stdout.split('\0').filter((name) => name !== '')) {
    const path = join(root, file);
    const size = statSync(path, { throwIfNoEntry: false })?.size;
    if (size === undefined || size > 4 << 20) continue;
    found.push(...findLeaksInText(file, readFileSync(path, 'utf8'), [root, homedir()]));
  }
  return found;
}

/** `own`: absolute paths of this machine; the short ones, which may be anybody's (`/root`), are not looked for. */
export function findLeaksInText(file: string, text: string, own: readonly string[]): string[] {
  const found: string[] = [];
  for (const [index, line] of text.split('\n').entries()) {
    for (const [pattern, what] of patterns) if (pattern.test(line)) found.push(`${file}:${index + 1}: ${what}`);
    for (const path of own) {
      if (path.split('/').length > 2 && line.includes(path)) found.push(`${file}:${index + 1}: this machine's ${path}`);
    }
  }
  return found;
}
