/** Owns `levee config check`: what is in effect, and where each value comes from. Shows no secret. */
import type { Loaded } from '../config/load.ts';
import { settingEntries } from '../config/settings.ts';
import type { Output } from '../output.ts';

export function checkConfig(loaded: Loaded, output: Output): void {
  const shown = settingEntries.map(([name, setting]) => {
    const value = loaded.config[name];
    const text = value === undefined ? undefined : setting.secret ? 'set, not shown' : setting.type.write(value);
    return { name: setting.environment, key: setting.toml, value: text ?? null, source: loaded.sources[name] };
  });
  const width = Math.max(...shown.map((each) => each.name.length));
  const lines = shown.map((each) => {
    const value = each.value ?? 'not set';
    return `${each.name.padEnd(width)}  ${value}  (${each.source === 'file' ? loaded.file : each.source})`;
  });
  const settings = Object.fromEntries(shown.map(({ name, value, source }) => [name, { value, source }]));
  output.result(lines.join('\n'), { file: loaded.file ?? null, settings });
}
