/**
 * Owns the settings on the command line: gives a command one option for each setting it reads, and turns what was
 * given into the effective configuration. Secrets have no option: a process list would show them.
 */
import { type Command, Option } from 'commander';
import { type Loaded, loadConfig, optionName } from './config/load.ts';
import { type SettingName, settings } from './config/settings.ts';
import { CommandFailure } from './output.ts';

export function addSettings(command: Command, names: readonly SettingName[]): Command {
  command.option('--config <path>', 'configuration file (default: levee.toml in the working directory)');
  command.addOption(new Option('--no-config', 'read no configuration file').hideHelp());
  for (const name of names) {
    const { type, text, environment, secret } = settings[name];
    if (!secret) command.option(`--${optionName(name)} <${type.word}>`, `${text} [${environment}]`);
  }
  return command;
}

/** Problems end the command with status 2, all of them told. */
export function effectiveConfig(command: Command): Loaded {
  const given = command.opts() as Record<string, unknown>;
  const options: Partial<Record<SettingName, string>> = {};
  for (const name of Object.keys(settings) as SettingName[]) {
    const attribute = new Option(`--${optionName(name)} <value>`).attributeName();
    const value = given[attribute];
    if (typeof value === 'string') options[name] = value;
  }
  const { config } = given;
  const file = config === false ? null : typeof config === 'string' ? config : undefined;
  const result = loadConfig({ environment: process.env, options, file });
  if (!result.ok) throw new CommandFailure(`configuration:\n  ${result.problems.join('\n  ')}`, 2);
  return result.loaded;
}
