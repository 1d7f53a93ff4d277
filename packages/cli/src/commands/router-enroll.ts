/** Owns `levee router enroll`: trades a one-time token for this router's key and says what to do next. */
import { enroll } from '@levee/edge/main.ts';
import type { Loaded } from '../config/load.ts';
import { settings } from '../config/settings.ts';
import { CommandFailure, type Output } from '../output.ts';
import { edgeStateDirectory } from './edge.ts';

export async function enrollRouter({ config }: Loaded, token: string, output: Output): Promise<void> {
  if (config.edgeControl === undefined) {
    const { environment, toml } = settings.edgeControl;
    throw new CommandFailure(`which control plane? Set ${environment} or ${toml}, or give --edge-control`, 2);
  }
  const result = await enroll(config.edgeControl, token, edgeStateDirectory(config));
  if (!result.ok) throw new CommandFailure(result.reason);
  const { router, keyFile } = result;
  const { name, location } = router;
  output.result(
    `this machine is router ${name} at ${location}; its key is in ${keyFile}\nrun it: levee edge --edge-control ${config.edgeControl.join(',')}`,
    { ...router, key_file: keyFile },
  );
}
