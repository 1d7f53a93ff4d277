/**
 * nftables through libnftables.so.1, loaded by koffi: no process per change. Owns one context; must never run two
 * commands on it at once (libnftables(3): a context is not safe to share between threads).
 *
 * The call runs on a thread of libuv's pool, so the event loop goes on during a commit.
 */
import koffi from 'koffi';
import type { NftDriver, NftResult } from './port.ts';
import { createSerial } from './serial.ts';

type Pointer = unknown;

interface Library {
  newContext(flags: number): Pointer;
  freeContext(context: Pointer): void;
  bufferOutput(context: Pointer): number;
  bufferError(context: Pointer): number;
  output(context: Pointer): string;
  error(context: Pointer): string;
  setDryRun(context: Pointer, dry: boolean): void;
  run: { async(context: Pointer, text: string, done: (error: Error | null, status: number) => void): void };
  trim(padBytes: number): number;
}

/** Texts above this leave so much freed memory behind that it is worth handing back to the system. */
const trimAboveBytes = 1 << 20;

let loaded: Library | undefined;

function load(): Library {
  if (loaded) return loaded;
  const nftables = koffi.load('libnftables.so.1');
  const libc = koffi.load('libc.so.6');
  loaded = {
    newContext: nftables.func('void *nft_ctx_new(uint32_t flags)') as Library['newContext'],
    freeContext: nftables.func('void nft_ctx_free(void *context)') as Library['freeContext'],
    bufferOutput: nftables.func('int nft_ctx_buffer_output(void *context)') as Library['bufferOutput'],
    bufferError: nftables.func('int nft_ctx_buffer_error(void *context)') as Library['bufferError'],
    output: nftables.func('const char *nft_ctx_get_output_buffer(void *context)') as Library['output'],
    error: nftables.func('const char *nft_ctx_get_error_buffer(void *context)') as Library['error'],
    setDryRun: nftables.func('void nft_ctx_set_dry_run(void *context, bool dry)') as Library['setDryRun'],
    run: nftables.func('int nft_run_cmd_from_buffer(void *context, const char *text)') as unknown as Library['run'],
    trim: libc.func('int malloc_trim(size_t pad)') as Library['trim'],
  };
  return loaded;
}

/** Throws when the library, or a function of it, is not there: the caller falls back to the command. */
export function openNftLibrary(version: string): NftDriver {
  const library = load();
  const context = library.newContext(0);
  if (context === null) throw new Error('libnftables gave no context');
  if (library.bufferOutput(context) !== 0 || library.bufferError(context) !== 0) {
    library.freeContext(context);
    throw new Error('libnftables could not buffer its output');
  }
  const lane = createSerial();
  let open = true;

  const call = (text: string, dry: boolean): Promise<NftResult> =>
    lane.run(async () => {
      if (!open) throw new Error('the nft driver is closed');
      library.setDryRun(context, dry);
      const status = await new Promise<number>((resolve, reject) => {
        library.run.async(context, text, (error, result) => (error ? reject(error) : resolve(result)));
      });
      const output = library.output(context);
      const message = library.error(context);
      if (text.length > trimAboveBytes) library.trim(0);
      return status === 0 ? { ok: true, output } : { ok: false, message: message.trim() || `nft failed (${status})` };
    });

  return {
    name: 'library',
    version,
    apply: (text) => call(text, false),
    check: (text) => call(text, true),
    list: (what) => call(`list ${what}\n`, false),
    close: () =>
      lane.run(() => {
        if (open) library.freeContext(context);
        open = false;
      }),
  };
}
