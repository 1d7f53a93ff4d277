/**
 * Owns one worker over its lives: starts it, starts it anew when it dies or falls silent, and remembers what a new one has to be told
 * and what a dead one had counted. Never opens a socket itself.
 */
import { closeSync } from 'node:fs';
import { MessageChannel, type MessagePort, receiveMessageOnPort, Worker } from 'node:worker_threads';
import type { CollectorStatus, FromCollector, ToCollector } from '../bus/port.ts';
import { type CollectorLog, logRefused } from './collector-log.ts';
import { mergeExporters, withoutRates } from './merge-exporters.ts';
import { addressOfListening, type ListenAddress, RECEIVE_BUFFER_OCTETS, type RefusedAddress } from './receive-port.ts';
import type { FromWorker, ToWorker, WorkerListening, WorkerOrder } from './worker-messages.ts';

export interface WorkerHandleOptions {
  /** Of each life, with its number behind it. */
  readonly name: string;
  readonly listen: readonly ListenAddress[];
  /** How many workers listen on the same addresses. */
  readonly sharing: number;
  readonly sampleOctets: number;
  readonly receive: WorkerOrder['receive'];
  readonly log: CollectorLog;
  readonly send: (message: FromCollector) => void;
  /** Silent for so long after it listened, it is ended and another started; absent: 30 s. */
  readonly silenceMilliseconds?: number;
  /** What a worker that begins is told. */
  readonly greeting: () => readonly ToCollector[];
}

const firstPauseMilliseconds = 100;
const longestPauseMilliseconds = 10_000;
/** Slots come four times a second; on a machine that stands still nothing is gained by a new start. */
const defaultSilenceMilliseconds = 30_000;
/** A silence is so many looks long: while we stand still ourselves, we do not look. */
const looksInSilence = 6;

export class WorkerHandle {
  restarts = 0;
  listening: WorkerListening | undefined = undefined;
  /** Of all lives. */
  exporters: CollectorStatus['exporters'] = [];
  kernelDrops = 0;
  status: CollectorStatus | undefined = undefined;
  readonly #options: WorkerHandleOptions;
  #retiredExporters: CollectorStatus['exporters'] = [];
  #retiredDrops = 0;
  #refused: readonly RefusedAddress[] = [];
  #listen: readonly ListenAddress[];
  #worker: Worker | undefined;
  #port: MessagePort | undefined;
  #pause = firstPauseMilliseconds;
  #silentLooks = 0;
  #restart: NodeJS.Timeout | undefined;
  readonly #watch: NodeJS.Timeout;
  #stopping = false;
  #ended: Promise<void> = Promise.resolve();

  constructor(options: WorkerHandleOptions) {
    this.#options = options;
    this.#listen = options.listen;
    const { silenceMilliseconds = defaultSilenceMilliseconds } = options;
    this.#watch = setInterval(() => {
      const silentMilliseconds = ++this.#silentLooks * (silenceMilliseconds / looksInSilence);
      // A thread that begins has much to read before it can say anything.
      const allowed = this.listening === undefined ? defaultSilenceMilliseconds : silenceMilliseconds;
      if (this.#worker === undefined || silentMilliseconds < allowed) return;
      options.log.warn(
        { worker: this.#name, silent_ms: silentMilliseconds },
        'a collector worker is silent and is ended',
      );
      void this.#worker.terminate();
    }, silenceMilliseconds / looksInSilence);
  }

  /** Resolves when it listens, or has said why it does not; also when it ended before. */
  start(): Promise<void> {
    return new Promise((resolve) => {
      const { port1, port2 } = new MessageChannel();
      const { sharing, sampleOctets, receive, log } = this.#options;
      const order: WorkerOrder = {
        collector: this.#name,
        listen: this.#listen,
        sharing,
        sampleOctets,
        receive,
        port: port2,
      };
      const worker = new Worker(new URL('./worker.ts', import.meta.url), { workerData: order, transferList: [port2] });
      this.#worker = worker;
      this.#port = port1;
      this.#silentLooks = 0;
      for (const message of this.#options.greeting()) port1.postMessage(message);
      port1.on('message', (message: FromWorker) => {
        this.#hear(message);
        if (message.type === 'listening') resolve();
      });
      worker.on('error', (error) => log.warn({ worker: this.#name, err: error }, 'a collector worker failed'));
      this.#ended = new Promise((ended) => {
        worker.once('exit', (code) => {
          // What it said last may not have been heard yet: its sockets, and a slot.
          for (let last = receiveMessageOnPort(port1); last !== undefined; last = receiveMessageOnPort(port1)) {
            this.#hear(last.message as FromWorker);
          }
          port1.close();
          this.#retire(code);
          resolve();
          ended();
        });
      });
    });
  }

  send(message: ToCollector): void {
    this.#port?.postMessage(message);
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    clearInterval(this.#watch);
    clearTimeout(this.#restart);
    const stop: ToWorker = { type: 'stop' };
    this.#port?.postMessage(stop);
    const force = setTimeout(() => void this.#worker?.terminate(), 2_000);
    await this.#ended;
    clearTimeout(force);
  }

  get #name(): string {
    return `${this.#options.name}.${this.restarts}`;
  }

  #hear(message: FromWorker): void {
    this.#silentLooks = 0;
    switch (message.type) {
      case 'listening':
        this.listening = message;
        // Who asked for any port gets the same one in the next life.
        this.#listen = this.#listen.map((address, index) => message.open[index]?.address ?? address);
        logRefused(this.#options.log, this.#refused, message.refused);
        this.#refused = message.refused;
        for (const socket of message.open)
          if (socket !== undefined) this.#sayBuffer(socket.address, socket.receiveBufferOctets);
        return;
      case 'warning':
        this.#options.log.warn({ worker: this.#name, ...message.fields }, message.message);
        return;
      case 'status':
        this.#pause = firstPauseMilliseconds;
        this.status = message;
        this.exporters = mergeExporters([message.exporters, this.#retiredExporters]);
        this.kernelDrops = message.kernelDrops + this.#retiredDrops;
        break;
    }
    this.#options.send(message);
  }

  #sayBuffer(address: ListenAddress, bytes: number): void {
    if (bytes >= RECEIVE_BUFFER_OCTETS) return;
    this.#options.log.warn(
      { worker: this.#name, address: addressOfListening(address), bytes, wanted: RECEIVE_BUFFER_OCTETS },
      'the kernel gives a smaller receive buffer than wanted: raise net.core.rmem_max',
    );
  }

  #retire(code: number): void {
    this.#worker = undefined;
    this.#port = undefined;
    for (const socket of this.listening?.open ?? []) {
      if (socket !== undefined && socket.descriptor >= 0) closeSync(socket.descriptor);
    }
    this.#retiredExporters = this.exporters.map(withoutRates);
    this.#retiredDrops = this.kernelDrops;
    this.exporters = this.#retiredExporters;
    this.status = undefined;
    this.listening = undefined;
    if (this.#stopping) return;
    const { log } = this.#options;
    log.warn({ worker: this.#name, code, restart_ms: this.#pause }, 'a collector worker ended and is started anew');
    this.#restart = setTimeout(() => {
      this.restarts++;
      void this.start();
    }, this.#pause);
    this.#pause = Math.min(this.#pause * 2, longestPauseMilliseconds);
  }
}
