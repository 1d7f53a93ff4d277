/** Types of what the tests use of packages that bring none. */
declare module 'gamedig' {
  interface Answer {
    readonly name: string;
    readonly players: readonly { readonly name?: string }[];
  }
  const GameDig: { query(options: Readonly<Record<string, string | number | boolean>>): Promise<Answer> };

  export { GameDig };
}

declare module '@jsprismarine/raknet' {
  import type { EventEmitter } from 'node:events';

  export default class Listener extends EventEmitter {
    listen(address: string, port: number): Promise<this>;
  }
}
