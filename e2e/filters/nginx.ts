/**
 * A real nginx (Debian) on port 80 of the server's addresses: files to fetch, and a place to put some. Owns its directory.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type FilteredPath, families, server, until } from './filtered-path.ts';

export class Nginx {
  readonly #directory: string;

  private constructor(directory: string) {
    this.#directory = directory;
  }

  static async start(path: FilteredPath): Promise<Nginx> {
    const directory = mkdtempSync(join(tmpdir(), 'levee-nginx-'));
    for (const name of ['files/put', 'temporary']) mkdirSync(join(directory, name), { recursive: true });
    const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
      (name) => `${name}_temp_path ${directory}/temporary/${name};`,
    );
    const listening = families.map((family) => `listen ${family === 4 ? server[4] : `[${server[6]}]`}:80;`);
    writeFileSync(
      join(directory, 'nginx.conf'),
      `daemon off; master_process off; user root; pid ${directory}/pid; error_log stderr;
      events { worker_connections 4096; }
      http {
        access_log off; client_max_body_size 0; ${temporary.join(' ')}
        server { ${listening.join(' ')} root ${directory}/files; location /put/ { dav_methods PUT; } }
      }`,
    );
    const nginx = new Nginx(directory);
    const program = path.start(path.server, 'nginx', [
      '-e',
      'stderr',
      '-p',
      directory,
      '-c',
      `${directory}/nginx.conf`,
    ]);
    await until('nginx to listen', () => {
      if (program.child.exitCode !== null) throw new Error(`nginx ended: ${program.output}`);
      return path.server.run('ss', ['-Hltn', 'sport', '=', ':80']).trim().split('\n').length === families.length;
    });
    return nginx;
  }

  get directory(): string {
    return this.#directory;
  }

  /** Served as `/<name>`. */
  offer(name: string, content: Uint8Array): void {
    writeFileSync(join(this.#directory, 'files', name), content);
  }

  /** Of its directory; what was put as `/put/<name>` is `files/put/<name>`. */
  file(name: string): Uint8Array {
    return readFileSync(join(this.#directory, name));
  }

  [Symbol.dispose](): void {
    rmSync(this.#directory, { recursive: true, force: true });
  }
}
