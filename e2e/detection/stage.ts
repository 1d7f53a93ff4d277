/**
 * A whole installation on a router of its own: the wire that attacks come in by, `levee up`, gobgpd, BIRD as its peer, and the
 * exporter's place. All of it in one network namespace, which the calling thread enters. Owns its setup and its end.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Bird, startBird } from '@levee/lab/bgp/bird.ts';
import { freePort } from '@levee/lab/bgp/daemon.ts';
import { type Gobgpd, startGobgpd } from '@levee/lab/bgp/gobgpd.ts';
import type { ExporterOptions } from '@levee/lab/exporters/exporter.ts';
import { type Replay, replayStepMs, startReplay } from '@levee/lab/exporters/replay.ts';
import { enterNamespace } from '@levee/lab/namespace.ts';
import { device, RouterPath } from '@levee/lab/router-path.ts';
import { type LabelledTraffic, labelledTraffic, type TrafficOptions } from '@levee/lab/traffic/labelled-traffic.ts';
import { writePcap } from '@levee/lab/traffic/pcap-file.ts';
import { RunningLevee, until } from '../running-levee.ts';
import { allPrefixes } from './scene.ts';

const speakerAsn = 64500;
const peerAsn = 64501;
/** Of a namespace that nobody else is in. */
const flowPort = 6343;

export interface PreparedTraffic extends LabelledTraffic {
  readonly file: string;
}

export class Stage {
  readonly path: RouterPath;
  readonly levee: RunningLevee;
  readonly gobgpd: Gobgpd;
  readonly bird: Bird;
  readonly provider: { readonly uuid: string; readonly key: string };
  readonly #folder: string;

  private constructor(parts: Pick<Stage, 'path' | 'levee' | 'gobgpd' | 'bird' | 'provider'>, folder: string) {
    this.path = parts.path;
    this.levee = parts.levee;
    this.gobgpd = parts.gobgpd;
    this.bird = parts.bird;
    this.provider = parts.provider;
    this.#folder = folder;
  }

  /** From then on the calling thread, and whatever it starts, is on the router. */
  static async start(label: string): Promise<Stage> {
    const ends: (() => unknown)[] = [];
    try {
      const path = new RouterPath({ protectedPrefixes: allPrefixes, label });
      ends.push(() => path.remove());
      enterNamespace(path.router.name);
      const folder = mkdtempSync(join(tmpdir(), `levee-detection-${process.pid}-`));
      ends.push(() => rmSync(folder, { recursive: true, force: true }));
      const peer = { address: '127.0.0.2', port: await freePort('127.0.0.2'), asn: peerAsn };
      const gobgpd = await startGobgpd({ neighbors: [peer], asn: speakerAsn });
      ends.push(() => gobgpd.remove());
      const bird = await startBird({
        ...peer,
        neighbor: { address: gobgpd.address, port: gobgpd.port, asn: speakerAsn },
      });
      ends.push(() => bird.remove());
      const levee = await RunningLevee.start({
        environment: { LEVEE_GOBGP: gobgpd.target, LEVEE_FLOW_LISTEN: `127.0.0.1:${flowPort}` },
      });
      ends.push(() => levee.stop());
      const provider = await levee.createProvider('Example Hosting', allPrefixes);
      await until('the BGP session', 20_000, () => bird.established());
      return new Stage({ path, levee, gobgpd, bird, provider }, folder);
    } catch (error) {
      for (const end of ends.reverse()) await end();
      throw error;
    }
  }

  prepare(options: TrafficOptions): PreparedTraffic {
    const traffic = labelledTraffic(options);
    const file = join(this.#folder, `${options.seed.replaceAll(' ', '-')}.pcap`);
    writePcap(file, traffic.schedule.inOrder(), replayStepMs);
    return { ...traffic, file };
  }

  replay({ file }: PreparedTraffic): Promise<Replay> {
    return startReplay({
      file,
      sender: { namespace: this.path.attacker, device: device.attacker },
      receiver: { namespace: this.path.router, device: device.routerOutside },
    });
  }

  /** Where an exporter stands, and whom it tells. */
  exporting(): ExporterOptions {
    const collector = `127.0.0.1:${flowPort}`;
    return { namespace: this.path.router, device: device.routerOutside, collector, sampling: 16 };
  }

  async stop(): Promise<void> {
    await this.levee.stop();
    await this.bird.remove();
    await this.gobgpd.remove();
    this.path.remove();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
