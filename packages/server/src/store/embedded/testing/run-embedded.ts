/**
 * Runs an embedded database until it is killed: the parent that embedded-postgres.test.ts kills. Argument: the data
 * directory. Prints one line of JSON when it runs or cannot.
 */
import { openDatabase } from '../../database.ts';
import { startEmbedded } from '../embedded-postgres.ts';

const started = await startEmbedded({ dataDirectory: process.argv[2] ?? '' });
if (!started.ok) {
  console.log(JSON.stringify(started));
} else {
  const database = openDatabase(started.postgres.address);
  const { rows } = await database.pool.query(
    `select current_setting('listen_addresses') as listening, current_setting('fsync') as fsync,
      current_setting('data_checksums') as checksums`,
  );
  await database.pool.query('create table if not exists kept (number integer)');
  await database.pool.query('insert into kept select count(*) + 1 from kept');
  const { rows: kept } = await database.pool.query('select count(*) as count from kept');
  // Before the line is printed: whoever reads it may ask for the end at once.
  process.on('SIGTERM', async () => {
    await database.close();
    await started.postgres.stop();
    process.exit(0);
  });
  console.log(JSON.stringify({ ok: true, pid: started.postgres.pid, ...rows[0], kept: kept[0].count }));
}
