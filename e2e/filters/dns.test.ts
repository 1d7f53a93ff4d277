/** Guarantees of filter kind 22 with BIND's named behind the router and dig before it. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { labObstacle } from '@levee/lab/namespace.ts';
import { FilteredPath, families, server, until } from './filtered-path.ts';
import { junk, Strangers } from './strangers.ts';

const port = 53;
const kindId = 22;

class Named {
  readonly #directory = mkdtempSync(join(tmpdir(), 'levee-named-'));

  async start(path: FilteredPath): Promise<void> {
    const file = (name: string) => join(this.#directory, name);
    writeFileSync(
      file('named.conf'),
      `options {
        directory "${this.#directory}"; pid-file none; session-keyfile none; listen-on { ${server[4]}; };
        listen-on-v6 { ${server[6]}; }; recursion no; dnssec-validation no; allow-transfer { any; };
      };
      controls { };
      zone "example.com" { type primary; file "${file('zone')}"; };\n`,
    );
    writeFileSync(
      file('zone'),
      '$TTL 60\n@ SOA ns hostmaster 1 60 60 60 60\n@ NS ns\nns A 192.0.2.9\nwww A 192.0.2.10\nlong TXT ' +
        `${'"0123456789abcdef0123456789abcdef" '.repeat(60)}\n`,
    );
    const program = path.start(path.server, 'named', ['-g', '-u', 'root', '-n', '1', '-c', file('named.conf')]);
    await until('named to run', () => {
      if (program.child.exitCode !== null) throw new Error(`named ended: ${program.output}`);
      return program.output.includes(' running');
    });
  }

  [Symbol.dispose](): void {
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

test('questions of dig are answered through the filter; answers, updates and junk are discarded', {
  skip: labObstacle() ?? false,
}, async () => {
  using named = new Named();
  await using path = new FilteredPath('dns');
  using strangers = new Strangers(path);
  path.filter(kindId);
  await named.start(path);
  const unwanted = [
    ...junk(100, 60),
    // An answer, an update, no question, two of them, and an answer's record.
    ...junk(30, 60, '4d31818000010001'),
    ...junk(30, 60, '4d31280000010000'),
    ...junk(30, 12, '4d310100000000000000'),
    ...junk(30, 60, '4d3101000002000000000000'),
    ...junk(30, 60, '4d3101000001000100000000'),
    ...junk(30, 11, '4d31010000010000000000'),
  ];
  for (const family of families) {
    const dig = (...args: string[]) =>
      path.run(path.client, 'dig', [`@${server[family]}`, '+tries=1', '+time=3', '+short', ...args]);
    const before = path.discarded();
    const [plain, withoutEdns, checked, long, lacking, sent] = await Promise.all([
      dig('www.example.com', 'A'),
      dig('www.example.com', 'A', '+noedns', '+norecurse'),
      dig('www.example.com', 'A', '+dnssec', '+nsid', '+padding=128', '+subnet=192.0.2.0/24'),
      dig('long.example.com', 'TXT', '+bufsize=512'),
      dig('nowhere.example.com', 'A', '+noshort', '+comments'),
      strangers.send(port, unwanted),
    ]);
    for (const { output } of [plain, withoutEdns, checked]) assert.equal(output, '192.0.2.10\n');
    assert.match(long.output, /"0123456789abcdef0123456789abcdef"/, 'cut off over UDP, then whole over TCP');
    assert.match(lacking.output, /NXDOMAIN/);
    assert.equal(sent, 0);
    assert.equal(path.discarded() - before, unwanted.length, 'of the questions nothing');
  }
});
