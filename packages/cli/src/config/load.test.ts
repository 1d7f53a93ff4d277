/** Guarantees of configuration: what wins, what is refused, and that secrets stay secret. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { type Loaded, loadConfig, optionName, type Sources } from './load.ts';
import { settingEntries, settings } from './settings.ts';

const folder = mkdtempSync(join(tmpdir(), 'levee-config-'));
after(() => rmSync(folder, { recursive: true, force: true }));

function file(name: string, content: string): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

function load(sources: Partial<Sources>): Loaded {
  const result = loadConfig({ environment: {}, file: null, ...sources });
  assert.ok(result.ok, JSON.stringify(result));
  return result.loaded;
}

function problems(sources: Partial<Sources>): readonly string[] {
  const result = loadConfig({ environment: {}, file: null, ...sources });
  assert.ok(!result.ok, 'it was accepted');
  return result.problems;
}

describe('sources', () => {
  test('without any, the fixed points hold', () => {
    const { config } = load({});
    assert.deepEqual(config.listen, { host: '127.0.0.1', port: 8080 });
    assert.equal(config.dataDirectory, './.levee');
    assert.equal(config.databaseUrl, undefined);
    assert.equal(config.edgeNetns, undefined);
  });

  test('names are the fixed ones', () => {
    const names = settingEntries.map(([, setting]) => setting.environment);
    for (const name of ['LEVEE_LISTEN', 'LEVEE_DATA_DIR', 'LEVEE_OPERATOR_KEY', 'DATABASE_URL', 'LEVEE_EDGE_NETNS']) {
      assert.ok(names.includes(name), name);
    }
    assert.equal(new Set(names).size, names.length);
  });

  test('command line wins over environment over file over default', () => {
    const path = file('order.toml', 'listen = "10.0.0.1:1"\ndata_dir = "/file"\nlog_level = "info"\n');
    const { config, sources } = load({
      file: path,
      environment: { LEVEE_LISTEN: '10.0.0.2:2', LEVEE_DATA_DIR: '/environment' },
      options: { listen: '10.0.0.3:3' },
    });
    assert.deepEqual(config.listen, { host: '10.0.0.3', port: 3 });
    assert.equal(config.dataDirectory, '/environment');
    assert.equal(config.logLevel, 'info');
    assert.equal(config.edgeDriver, 'auto');
    const { listen, dataDirectory, logLevel, edgeDriver } = sources;
    assert.deepEqual([listen, dataDirectory, logLevel, edgeDriver], ['command line', 'environment', 'file', 'default']);
  });

  test('a rate limit is a number or off, and 0 is off too', () => {
    const limit = (text: string) => load({ environment: { LEVEE_RATE_LIMIT: text } }).config.rateLimit;
    assert.deepEqual(['off', '0', '1', '600'].map(limit), [0, 0, 1, 600]);
    assert.equal(load({}).config.rateLimit, 120_000);
  });

  test('several addresses for DNS, or none', () => {
    const listen = (text: string) => load({ environment: { LEVEE_DNS_LISTEN: text } }).config.dnsListen;
    const both = [
      { host: '192.0.2.53', port: 53 },
      { host: '2001:db8::53', port: 53 },
    ];
    assert.deepEqual(listen('192.0.2.53:53, [2001:db8::53]:53'), both);
    assert.deepEqual(listen('off'), []);
    assert.deepEqual(listen(''), [{ host: '127.0.0.1', port: 5300 }]);
    const inFile = (text: string) =>
      load({ file: file('dns.toml', `[dns]\nlisten = ${text}\nanswers_per_second = 9\n`) });
    assert.deepEqual(inFile('["192.0.2.53:53", "[2001:db8::53]:53"]').config.dnsListen, both);
    for (const none of ['[]', '""', '"off"']) assert.deepEqual(inFile(none).config.dnsListen, [], none);
    assert.equal(inFile('[]').config.dnsAnswersPerSecond, 9);
  });

  test('the pools of tunnels are a subnet of each family', () => {
    const given = { LEVEE_TUNNEL_INNER_IPV4: '10.9.0.0/16', LEVEE_TUNNEL_INNER_IPV6: 'FD00:9::/64' };
    const { tunnelInnerIpv4, tunnelInnerIpv6 } = load({ environment: given }).config;
    assert.deepEqual([tunnelInnerIpv4, tunnelInnerIpv6], ['10.9.0.0/16', 'fd00:9::/64']);
    const usual = load({}).config;
    assert.deepEqual([usual.tunnelInnerIpv4, usual.tunnelInnerIpv6], ['10.48.0.0/13', 'fd6c:6576:6565::/48']);
  });

  test('an empty variable is not set', () => {
    assert.equal(load({ environment: { LEVEE_EDGE_NETNS: '', DATABASE_URL: '' } }).config.edgeNetns, undefined);
  });

  test('tables and lists of levee.toml are read, LEVEE_CONFIG names the file', () => {
    const path = file(
      'edge.toml',
      '[edge]\nnetns = "blue"\ncontrol = ["http://10.0.0.1:8080", "unix:/run/levee.sock"]\n',
    );
    const { config, file: read } = load({ file: undefined, environment: { LEVEE_CONFIG: path } });
    assert.equal(config.edgeNetns, 'blue');
    assert.deepEqual(config.edgeControl, ['http://10.0.0.1:8080', 'unix:/run/levee.sock']);
    assert.equal(read, path);
  });

  test('a secret is read from the file that _FILE names, without its last line end', () => {
    const secret = file('secret', 'postgres://levee:pw@db/levee\n');
    assert.equal(
      load({ environment: { DATABASE_URL_FILE: secret } }).config.databaseUrl,
      'postgres://levee:pw@db/levee',
    );
    const path = file('secret.toml', `database_url_file = ${JSON.stringify(secret)}\n`);
    assert.equal(load({ file: path }).config.databaseUrl, 'postgres://levee:pw@db/levee');
  });
});

describe('refused', () => {
  test('an unknown variable, with the name that was probably meant', () => {
    assert.deepEqual(problems({ environment: { LEVEE_LISTN: '1' } }), [
      'LEVEE_LISTN: there is no such setting; did you mean LEVEE_LISTEN?',
    ]);
    assert.deepEqual(problems({ environment: { LEVEE_XQJZKWVBNMPO: '1' } }), [
      'LEVEE_XQJZKWVBNMPO: there is no such setting',
    ]);
  });

  test('an unknown key of levee.toml, also inside a table', () => {
    const path = file('unknown.toml', 'lisen = "x"\n[edge]\nnetn = "y"\n[nothing]\nhere = 1\n');
    assert.deepEqual(problems({ file: path }), [
      `${path}: lisen: there is no such setting; did you mean listen?`,
      `${path}: edge.netn: there is no such setting; did you mean edge.netns?`,
      `${path}: nothing.here: there is no such setting`,
    ]);
  });

  test('_FILE for what is no secret', () => {
    assert.match(
      problems({ environment: { LEVEE_LISTEN_FILE: '/x' } })[0] ?? '',
      /LEVEE_LISTEN_FILE: there is no such/,
    );
  });

  test('all problems at once, with what was received and what is allowed', () => {
    const environment = { LEVEE_LISTEN: '8080', LEVEE_LOG_LEVEL: 'loud', LEVEE_EDGE_CONTROL: 'ftp://x' };
    const found = problems({ environment });
    assert.equal(found.length, 3);
    assert.match(found[0] ?? '', /^LEVEE_LISTEN: expected host:port .*received "8080"/);
    assert.match(found[1] ?? '', /^LEVEE_LOG_LEVEL: expected one of trace, .*received "loud"/);
    assert.match(found[2] ?? '', /^LEVEE_EDGE_CONTROL: expected http/);
  });

  test('a secret that is given twice, wrong or unreadable: without showing it', () => {
    const secret = file('wrong', 'mysql://hunter2@db');
    const cases = [
      { DATABASE_URL: 'mysql://hunter2@db' },
      { DATABASE_URL_FILE: secret },
      { DATABASE_URL: 'postgres://hunter2@db/x', DATABASE_URL_FILE: secret },
      { LEVEE_OPERATOR_KEY_FILE: join(folder, 'absent') },
    ];
    for (const environment of cases) {
      const found = problems({ environment });
      assert.equal(found.length, 1, JSON.stringify(environment));
      assert.doesNotMatch(found.join(), /hunter2/);
    }
  });

  test('a levee.toml that is no TOML, by line and column, without quoting it; one that was named and is absent', () => {
    const path = file('broken.toml', 'listen = "127.0.0.1:1"\noperator_key = hunter2\n');
    const found = problems({ file: path });
    assert.equal(found.length, 1);
    assert.match(found[0] ?? '', new RegExp(`^${path}:2:\\d+: `));
    assert.doesNotMatch(found.join(), /hunter2/);
    assert.match(problems({ file: join(folder, 'absent.toml') })[0] ?? '', /cannot be read \(ENOENT\)/);
  });

  const bad: [keyof typeof settings, string[]][] = [
    [
      'listen',
      ['127.0.0.1', ':8080', '::1:8080', '[::1]', '[nonsense]:80', '127.0.0.1:65536', 'a b:1', '[10.0.0.1]:80'],
    ],
    ['trustedProxies', ['proxy', '10.0.0.0/33', '10.0.0.1/8', '10.0.0.1,,10.0.0.2', '::1/0']],
    ['edgeNetns', ['../x', '-x', 'a b', 'a/b']],
    ['edgeIngressDevices', ['a,,b', 'sixteencharacter', '..', 'a/b']],
    ['edgeControl', ['unix:relative', 'http://x/path', 'http://user@x', 'x:80']],
    ['edgeDriver', ['Kernel', 'none']],
    ['rateLimit', ['-1', '1.5', 'many', 'OFF', '1000001', '0x10']],
    ['dnsListen', ['Off', '5300', '127.0.0.1:5300,', '127.0.0.1:5300,off', '127.0.0.1:70000']],
    ['flowListen', ['Off', '6343', '127.0.0.1:6343,', '127.0.0.1:70000']],
    ['detectControl', ['unix:relative', 'http://x/path']],
    ['detectWorkers', ['0', '-1', '65', 'all']],
    ['dnsAnswersPerSecond', ['-1', 'off', '1000001', '1e3']],
    ['tunnelInnerIpv4', ['10.0.0.1/24', '10.0.0.0/31', '10.0.0.0', 'fd00::/48', '10.0.0.0/8,10.1.0.0/16']],
    ['tunnelInnerIpv6', ['fd00::/127', '10.0.0.0/8', 'fd00::1/48']],
    ['auditKeepDays', ['0', 'off', '-3', '365d']],
    ['attackKeepDays', ['0', 'off', '365d']],
  ];
  for (const [name, values] of bad) {
    test(`values of ${settings[name].environment} that mean nothing`, () => {
      for (const value of values) {
        const environment = { [settings[name].environment]: value };
        assert.ok(!loadConfig({ environment, file: null }).ok, `${value} was accepted`);
      }
    });
  }
});

describe('noted', () => {
  test("the suites' own variables are nobody's business", () => {
    load({ environment: { LEVEE_TEST_SEED: '7', LEVEE_BENCH_ROUNDS: '1' } });
  });

  test('every default can be written and read back, every option has a name of its own', () => {
    for (const [name, setting] of settingEntries) {
      if (setting.default === undefined) continue;
      const again = setting.type.parse(setting.type.write(setting.default));
      assert.deepEqual(again, { ok: true, value: setting.default }, name);
    }
    assert.equal(new Set(settingEntries.map(([name]) => optionName(name))).size, settingEntries.length);
  });
});
