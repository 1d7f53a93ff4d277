/** Makes room for further webhooks of an account. Test code only. */
import type { ApiFixture, Holder } from './api-fixture.ts';

export async function removeWebhooks({ database }: Pick<ApiFixture, 'database'>, { uuid }: Holder): Promise<void> {
  await database.pool.query('update webhook set deletion_marked_at = now() where owner_uuid = $1', [uuid]);
}
