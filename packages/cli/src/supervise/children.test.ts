import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { type Loaded, loadConfig, type Sources } from '../config/load.ts';
import { type Reader, type SettingName, settingEntries, settings } from '../config/settings.ts';
import { controlProcess, detectorProcess, edgeProcess } from './children.ts';

const data = mkdtempSync(join(tmpdir(), `levee-children-${process.pid}-`));
after(() => rmSync(data, { recursive: true, force: true }));

/** Of every setting a value that is not its default: a new setting needs one here to compile. */
const given: Readonly<Record<SettingName, string>> = {
  listen: '127.0.0.1:9080',
  trustedProxies: '127.0.0.1,10.0.0.0/8',
  rateLimit: 'off',
  auditKeepDays: '30',
  attackKeepDays: '30',
  flowspecBudget: '50',
  dataDirectory: '/elsewhere',
  databaseUrl: 'postgres://levee@db.example.net/levee',
  operatorKey: 'a-passphrase-that-somebody-chose-long',
  webhookAllow: '10.1.0.0/16',
  logLevel: 'error',
  gobgp: '127.0.0.1:50051',
  bgpExabgp: '/elsewhere/exabgp.sock',
  bgpMark: '64500:1:2',
  bgpBlackholeNextHopIpv4: '192.0.2.9',
  bgpBlackholeNextHopIpv6: '100::9',
  bgpBlackholeExport: 'on',
  dnsListen: 'off',
  dnsAnswersPerSecond: '20',
  dnsResolvers: '192.0.2.53:53',
  tunnelInnerIpv4: '100.64.0.0/16',
  tunnelInnerIpv6: 'fd12:3456::/48',
  edgeDriver: 'dry',
  edgeNetns: 'router-1',
  edgeIngressDevices: 'eth0,eth1',
  edgeStateDirectory: '/elsewhere/edge',
  edgeControl: 'http://192.0.2.1:8080',
  edgeRouterKey: 'a-key-of-this-router',
  flowListen: '127.0.0.1:9995',
  detectControl: 'http://192.0.2.1:8080',
  detectKey: 'a-key-of-this-detector',
  detectWorkers: '2',
  detectStateDirectory: '/elsewhere/detector',
  detectRole: 'detect',
  detectNats: 'nats://192.0.2.4:4222,tls://192.0.2.5:4222',
  detectNatsName: 'levee.second',
  detectNatsUser: 'detector',
  detectNatsPassword: 'a-password-at-nats',
  detectNatsToken: 'a-token-for-nats',
  detectNatsCredentials: '/elsewhere/detector.creds',
  detectNatsCa: '/elsewhere/ca.pem',
  detectNatsCertificate: '/elsewhere/detector.pem',
  detectNatsKey: '/elsewhere/detector-key.pem',
};

/** What a child is told otherwise than its parent was: places, seen from the data directory. */
const replaced: Readonly<Record<Exclude<Reader, 'up'>, readonly SettingName[]>> = {
  serve: ['dataDirectory'],
  edge: ['dataDirectory', 'edgeStateDirectory', 'edgeControl'],
  detect: ['dataDirectory', 'detectStateDirectory', 'detectControl'],
};

function load(sources: Partial<Sources>): Loaded {
  const read = loadConfig({ environment: {}, file: null, ...sources });
  assert.ok(read.ok, JSON.stringify(read));
  return read.loaded;
}

/** All of them by their variables, in levee.toml, or, what is secret, by files. */
const ways: Readonly<Record<string, () => Loaded>> = {
  'the environment': () =>
    load({
      environment: Object.fromEntries(settingEntries.map(([name, { environment }]) => [environment, given[name]])),
    }),
  'levee.toml': () => {
    const file = join(data, 'levee.toml');
    writeFileSync(
      file,
      settingEntries.map(([name, { toml }]) => `${toml} = ${JSON.stringify(given[name])}\n`).join(''),
    );
    return load({ file });
  },
  'files of secrets': () =>
    load({
      environment: Object.fromEntries(
        settingEntries.map(([name, { environment, secret }]) => {
          if (!secret) return [environment, given[name]];
          const path = join(data, name);
          writeFileSync(path, `${given[name]}\n`);
          return [`${environment}_FILE`, path];
        }),
      ),
    }),
};

for (const [way, loaded] of Object.entries(ways)) {
  test(`each child of \`levee up\` gets every setting that it reads, and no other, from ${way}`, () => {
    const parent = loaded();
    const place = { data, edgeState: join(data, 'edge'), detectorState: join(data, 'detector') };
    const environments = {
      serve: controlProcess(parent, place, undefined).environment,
      edge: edgeProcess(parent, place).environment,
      detect: detectorProcess(parent, place, undefined).environment,
    };
    for (const reader of ['serve', 'edge', 'detect'] as const) {
      const child = load({ environment: environments[reader] });
      for (const [name, setting] of settingEntries) {
        const isRead = setting.readBy.includes(reader);
        assert.equal(child.sources[name] !== 'default', isRead, `${reader}: ${name}`);
        if (isRead && !replaced[reader].includes(name)) {
          assert.deepEqual(child.config[name], parent.config[name], `${reader}: ${name}`);
        }
      }
    }
  });
}

test("files for NATS are the detector's also where they were named from another directory", () => {
  const place = { data, edgeState: join(data, 'edge'), detectorState: join(data, 'detector') };
  const parent = load({ environment: { LEVEE_DETECT_NATS_CA: 'certificates/ca.pem' } });
  const { environment, directory } = detectorProcess(parent, place, undefined);
  assert.notEqual(directory, process.cwd());
  assert.equal(environment.LEVEE_DETECT_NATS_CA, join(process.cwd(), 'certificates/ca.pem'));
});

test('of the secrets the edge has its own key alone, the detector its own and those to NATS', () => {
  const secretsOf = (reader: Reader) =>
    settingEntries.filter(([, each]) => each.secret && each.readBy.includes(reader)).map(([name]) => name);
  assert.deepEqual(secretsOf('edge'), ['edgeRouterKey']);
  assert.deepEqual(secretsOf('detect'), ['detectKey', 'detectNatsPassword', 'detectNatsToken']);
  for (const key of ['edgeRouterKey', 'detectKey', 'detectNatsPassword', 'detectNatsToken'] as const)
    assert.ok(!settings[key].readBy.includes('serve' as never));
});
