/** Owns `levee migrate`: brings the database to this version's schema and says what was applied. */

import { openDatabase } from '@levee/server/store/database.ts';
import { startEmbedded } from '@levee/server/store/embedded/embedded-postgres.ts';
import { migrate } from '@levee/server/store/migrate.ts';
import type { Loaded } from '../config/load.ts';
import { CommandFailure, type Output } from '../output.ts';

export async function migrateDatabase({ config }: Loaded, output: Output): Promise<void> {
  if (config.databaseUrl !== undefined) return migrateAt({ url: config.databaseUrl }, output);
  const log = (message: string) => output.progress(message);
  const started = await startEmbedded({ dataDirectory: config.dataDirectory, log });
  if (!started.ok) throw new CommandFailure(started.message);
  try {
    await migrateAt(started.postgres.address, output);
  } finally {
    await started.postgres.stop();
  }
}

async function migrateAt(address: Parameters<typeof openDatabase>[0], output: Output): Promise<void> {
  const database = openDatabase(address, { applicationName: 'levee migrate' });
  try {
    const result = await migrate(database);
    if (!result.ok) throw new CommandFailure(result.message);
    const { applied } = result;
    const text =
      applied.length === 0 ? 'the schema is up to date' : applied.map((name) => `applied ${name}`).join('\n');
    output.result(text, { applied });
  } catch (error) {
    if (error instanceof CommandFailure || !(error instanceof Error)) throw error;
    throw new CommandFailure(`the database could not be migrated: ${error.message}`);
  } finally {
    await database.close();
  }
}
