/**
 * A path through this process's network namespace: a sender and a receiver in namespaces of their own (held by a child
 * process each, gone with it), this one forwarding between them. For tests that count packets.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { until } from './until.ts';

export interface ForwardPath {
  /**
   * Sends UDP datagrams from 10.9.0.2, `perSecond` of them a second (0: at once). `payload`: hexadecimal; absent: 72
   * octets of nothing, so 100 bytes of IP.
   */
  send(destination: string, port: number, count: number, perSecond: number, payload?: string): Promise<void>;
  /** Datagrams that reached these ports of the receiver. */
  received(): Record<string, number>;
  close(): void;
}

/** `addresses`: the receiver's, all IPv4. `ports`: where it listens. Needs a namespace of the process's own. */
export async function openForwardPath(addresses: readonly string[], ports: readonly number[]): Promise<ForwardPath> {
  const run = (command: string, ...args: string[]): void => void execFileSync(command, args, { stdio: 'pipe' });
  const held: ChildProcess[] = [];
  const hold = (script: string, onLine?: (line: string) => void): Promise<ChildProcess> => {
    const child = spawn('unshare', ['-n', process.execPath, '-e', script], { stdio: ['pipe', 'pipe', 'inherit'] });
    held.push(child);
    return new Promise((resolve) => {
      child.stdout.on('data', (chunk: Buffer) => {
        resolve(child);
        for (const line of chunk.toString().trim().split('\n')) onLine?.(line);
      });
    });
  };
  let counts: Record<string, number> = {};
  // Either end says one line once it runs; the receiver opens its sockets when it is told that the path is there.
  const receiver = await hold(
    `console.log('{}'); process.stdin.once('data', () => { const counts = {};
      for (const port of ${JSON.stringify(ports)}) { const s = require('dgram').createSocket('udp4'); counts[port] = 0;
        s.on('message', () => { counts[port]++; }); s.bind(port, '0.0.0.0', () => s.setRecvBufferSize(4 << 20)); }
      setInterval(() => console.log(JSON.stringify(counts)), 20); });`,
    (line) => {
      counts = JSON.parse(line) as Record<string, number>;
    },
  );
  const done: (() => void)[] = [];
  const sender = await hold(
    `console.log('up'); const s = require('dgram').createSocket('udp4'); let rest = '';
     process.stdin.on('data', async (chunk) => { rest += chunk; const lines = rest.split('\\n'); rest = lines.pop();
       for (const line of lines) { const { destination, port, count, perSecond, payload } = JSON.parse(line); const began = performance.now();
         for (let n = 0; n < count; n++) {
           while (perSecond && (performance.now() - began) * perSecond / 1000 < n) await new Promise((r) => setTimeout(r, 1));
           await new Promise((r) => s.send(Buffer.from(payload, 'hex'), port, destination, r)); }
         console.log('sent'); } });`,
    (line) => {
      if (line === 'sent') done.shift()?.();
    },
  );
  const inside = (child: ChildProcess, ...args: string[]): void => run('nsenter', '-t', `${child.pid}`, '-n', ...args);
  for (const [child, device, own, peer] of [
    [sender, 'lvt0', '10.9.0.1/30', '10.9.0.2/30'],
    [receiver, 'lvt1', '10.9.1.1/30', '10.9.1.2/30'],
  ] as const) {
    run('ip', 'link', 'add', device, 'type', 'veth', 'peer', 'name', 'up0', 'netns', `${child.pid}`);
    run('ip', 'address', 'add', own, 'dev', device);
    run('ip', 'link', 'set', device, 'up');
    inside(child, 'ip', 'address', 'add', peer, 'dev', 'up0');
    inside(child, 'ip', 'link', 'set', 'up0', 'up');
    inside(child, 'ip', 'link', 'set', 'lo', 'up');
    inside(child, 'ip', 'route', 'add', 'default', 'via', own.replace('/30', ''));
  }
  for (const address of addresses) {
    inside(receiver, 'ip', 'address', 'add', `${address}/32`, 'dev', 'lo');
    run('ip', 'route', 'add', `${address}/32`, 'via', '10.9.1.2');
  }
  writeFileSync('/proc/sys/net/ipv4/ip_forward', '1');
  receiver.stdin?.write('go\n');
  await until('the receiver listens', () => Object.keys(counts).length === ports.length);
  return {
    send: (destination, port, count, perSecond, payload = '00'.repeat(72)) =>
      new Promise((resolve) => {
        done.push(resolve);
        sender.stdin?.write(`${JSON.stringify({ destination, port, count, perSecond, payload })}\n`);
      }),
    received: () => counts,
    close() {
      for (const child of held) child.kill('SIGKILL');
      for (const device of ['lvt0', 'lvt1']) {
        try {
          run('ip', 'link', 'delete', device);
        } catch {
          // It went with the namespace at its other end.
        }
      }
    },
  };
}
