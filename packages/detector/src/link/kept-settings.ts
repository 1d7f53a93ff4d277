/**
 * Keeps the last settings in the state directory, readable by its owner alone, so that detection begins without the control
 * plane. A file that cannot be read is as none.
 */
import { closeSync, fsyncSync, mkdirSync, openSync, readFileSync, renameSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { DetectorSettings } from '@levee/contract/detector.ts';
import { isSettings } from './stream-message.ts';

const fileName = 'settings.json';

export interface KeptSettings {
  read(): DetectorSettings | undefined;
  /** Whole or not at all. Throws what the file system throws. */
  write(settings: DetectorSettings): void;
}

/** Makes the directory (mode 0700) when it is absent. */
export function keepSettings(stateDirectory: string): KeptSettings {
  mkdirSync(stateDirectory, { recursive: true, mode: 0o700 });
  const path = join(stateDirectory, fileName);
  return {
    read() {
      try {
        const value: unknown = JSON.parse(readFileSync(path, 'utf8'));
        return isSettings(value) ? value : undefined;
      } catch {
        return undefined;
      }
    },
    write(settings) {
      const aside = `${path}.new`;
      const fd = openSync(aside, 'w', 0o600);
      writeSync(fd, JSON.stringify(settings));
      fsyncSync(fd);
      closeSync(fd);
      renameSync(aside, path);
    },
  };
}
