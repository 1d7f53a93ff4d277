/**
 * Decides as which user PostgreSQL runs: it refuses to be root. Creates no user.
 */
import { readFileSync } from 'node:fs';

export interface Identity {
  readonly uid: number;
  readonly gid: number;
  /** True when processes have to be started under another user than ours. */
  readonly drop: boolean;
}

export type IdentityResult =
  | { readonly ok: true; readonly identity: Identity }
  | { readonly ok: false; readonly message: string };

/** In this order: a user of our own, the one that PostgreSQL's package made, the one that owns nothing. */
const CANDIDATES = ['levee', 'postgres', 'nobody'];

/**
 * @param owner uid and gid that own an existing data directory: they are kept, whatever the candidates say.
 */
export function chooseIdentity(
  owner: { readonly uid: number; readonly gid: number } | undefined,
  process_: { readonly uid: number; readonly gid: number } = ownIds(),
  passwd: string = readFileSync('/etc/passwd', 'utf8'),
): IdentityResult {
  if (process_.uid !== 0) {
    if (owner !== undefined && owner.uid !== process_.uid) {
      return {
        ok: false,
        message: `the embedded database belongs to uid ${owner.uid} and Levee runs as uid ${process_.uid}: run it as that user, as root, or with another data directory`,
      };
    }
    return { ok: true, identity: { ...process_, drop: false } };
  }
  if (owner !== undefined && owner.uid !== 0) return { ok: true, identity: { ...owner, drop: true } };
  for (const name of CANDIDATES) {
    const entry = passwd.split('\n').find((line) => line.startsWith(`${name}:`));
    const [, , uid, gid] = (entry ?? '').split(':');
    if (uid !== undefined && gid !== undefined && Number(uid) > 0) {
      return { ok: true, identity: { uid: Number(uid), gid: Number(gid), drop: true } };
    }
  }
  return {
    ok: false,
    message: `PostgreSQL does not run as root, and none of the users ${CANDIDATES.join(', ')} exists: create one of them, run Levee as a plain user, or set DATABASE_URL`,
  };
}

function ownIds(): { uid: number; gid: number } {
  return { uid: process.geteuid?.() ?? -1, gid: process.getegid?.() ?? -1 };
}
