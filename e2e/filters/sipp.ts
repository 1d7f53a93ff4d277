/** A real SIP server: sipp (Debian) that takes every call, and echoes media. Never says anything of its own accord. */
import { type FilteredPath, server, until } from './filtered-path.ts';

/** Ready when it returns. Media comes back from `mediaPort`. */
export async function startUserAgentServer(
  path: FilteredPath,
  family: 4 | 6,
  port: number,
  mediaPort = 6000,
): Promise<void> {
  const addresses = ['-i', server[family], '-mi', server[family], '-p', `${port}`, '-mp', `${mediaPort}`];
  const program = path.start(path.server, 'sipp', ['-sn', 'uas', '-rtp_echo', '-nostdin', ...addresses]);
  await until('sipp to listen', () => {
    if (program.child.exitCode !== null) throw new Error(`sipp ended: ${program.output}`);
    return path.server.run('ss', ['-Hlun', 'sport', '=', `:${port}`]).includes(server[family]);
  });
}
