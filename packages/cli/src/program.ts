/**
 * Owns the words of the `levee` command: its subcommands, their arguments and options. What a subcommand does lies in
 * `commands/`, and is only loaded when it is called for.
 */
import { Command, Option } from 'commander';
import { renderSettingsHelp } from './config/document.ts';
import type { SettingName } from './config/settings.ts';
import { createOutput, type Format, type Output } from './output.ts';
import { addSettings, effectiveConfig } from './settings-options.ts';
import { version } from './version.ts';

const controlSettings: readonly SettingName[] = [
  'listen',
  'trustedProxies',
  'rateLimit',
  'auditKeepDays',
  'attackKeepDays',
  'flowspecBudget',
  'dnsListen',
  'dnsAnswersPerSecond',
  'dnsResolvers',
  'dataDirectory',
  'logLevel',
];
const detectorSettings: readonly SettingName[] = [
  'flowListen',
  'detectWorkers',
  'detectStateDirectory',
  'detectRole',
  'detectNats',
  'detectNatsName',
  'detectNatsUser',
  'detectNatsPassword',
  'detectNatsToken',
  'detectNatsCredentials',
  'detectNatsCa',
  'detectNatsCertificate',
  'detectNatsKey',
];
const edgeSettings: readonly SettingName[] = ['edgeDriver', 'edgeIngressDevices', 'edgeStateDirectory'];

export function createProgram(): Command {
  const program = new Command('levee')
    .description("Protects a network provider's addresses: one interface over what routers do with packets.")
    .version(version)
    .addOption(new Option('-o, --output <format>', 'how results are printed').choices(['text', 'json']).default('text'))
    .addHelpText('after', renderSettingsHelp())
    .showHelpAfterError('(levee --help says what there is)');
  const output = (): Output => createOutput(program.opts<{ output: Format }>().output);

  addSettings(
    program
      .command('up')
      .description('run everything on this machine: database, control plane, local edge, local detector'),
    [...controlSettings, 'edgeNetns', ...edgeSettings, ...detectorSettings],
  ).action(async (_options, command: Command) => {
    const { up } = await import('./commands/up.ts');
    await up(effectiveConfig(command), output());
  });

  addSettings(program.command('serve').description('run the control plane alone'), controlSettings)
    .addOption(
      new Option('--local-router <state-dir>', "make this machine's edge known, and leave its key there").hideHelp(),
    )
    .addOption(
      new Option(
        '--local-detector <state-dir>',
        "make this machine's detector known, and leave its key there",
      ).hideHelp(),
    )
    .action(async (options: { localRouter?: string; localDetector?: string }, command: Command) => {
      const { serve } = await import('./commands/serve.ts');
      await serve(effectiveConfig(command), output(), options);
    });

  addSettings(program.command('edge').description('run the edge of a router that was enrolled'), [
    'edgeControl',
    'dataDirectory',
    'logLevel',
    ...edgeSettings,
  ]).action(async (_options, command: Command) => {
    const { runEdge } = await import('./commands/edge.ts');
    await runEdge(effectiveConfig(command), output());
  });

  addSettings(program.command('detect').description('run a detector that was announced'), [
    'detectControl',
    'dataDirectory',
    'logLevel',
    ...detectorSettings,
  ]).action(async (_options, command: Command) => {
    const { runDetector } = await import('./commands/detect.ts');
    await runDetector(effectiveConfig(command), output());
  });

  program
    .command('exabgp')
    .description('what an ExaBGP runs as its process: announces through it what the control plane says')
    .argument('<socket>', 'the unix socket of the control plane (LEVEE_BGP_EXABGP)')
    .action(async (socket: string) => {
      const { relayExabgp } = await import('./commands/exabgp.ts');
      await relayExabgp(socket);
    });

  const router = program.command('router').description('this machine as a router');
  addSettings(
    router.command('enroll').description('trade the one-time token of a router for its key').argument('<token>'),
    ['edgeControl', 'dataDirectory', 'edgeStateDirectory'],
  ).action(async (token: string, _options, command: Command) => {
    const { enrollRouter } = await import('./commands/router-enroll.ts');
    await enrollRouter(effectiveConfig(command), token, output());
  });

  addSettings(program.command('migrate').description('bring the database to the schema of this version'), [
    'dataDirectory',
  ]).action(async (_options, command: Command) => {
    const { migrateDatabase } = await import('./commands/migrate.ts');
    await migrateDatabase(effectiveConfig(command), output());
  });

  const config = program.command('config').description('the configuration');
  addSettings(
    config.command('check').description('say what is in effect and where it comes from; fail when something is wrong'),
    [...controlSettings, 'edgeNetns', 'edgeControl', ...edgeSettings, 'detectControl', ...detectorSettings],
  ).action(async (_options, command: Command) => {
    const { checkConfig } = await import('./commands/config-check.ts');
    checkConfig(effectiveConfig(command), output());
  });

  program
    .command('lab')
    .description('attacker, router and customer on this machine: a real flood, and a rule that stops it (needs root)')
    .action(async () => {
      const { lab } = await import('./commands/lab.ts');
      await lab(output());
    });
  return program;
}
