/**
 * What the demonstration shows: one row a second, in place on a terminal, as plain lines in a log.
 * Owns the words and columns; must never measure.
 */
import type { LabResult, LabSecond } from './demo.ts';
import { demoTarget, floodPort, gamePort } from './demo-traffic.ts';
import type { RouterPath } from './router-path.ts';

/** `process.stdout`, or anything that takes text. */
export interface DemoOutput {
  write(text: string): unknown;
  readonly isTTY?: boolean;
}

const columns = ['packets/s in', 'dropped', 'delivered', 'players’ loss'] as const;
const widths = [14, 12, 12, 15] as const;

export class DemoDisplay {
  private readonly output: DemoOutput;
  private readonly live: boolean;

  constructor(output: DemoOutput) {
    this.output = output;
    this.live = output.isTTY === true;
  }

  say(text: string): void {
    this.output.write(`${this.live ? '\r\x1b[K' : ''}${text}\n`);
  }

  place(path: RouterPath, line: string | undefined): void {
    this.say(`attacker ── router ── customer   (namespaces ${path.attacker.name} … ${path.customer.name})`);
    this.say(
      `A flood of NTP answers (UDP from port ${floodPort}) against ${demoTarget}; 64 players on port ${gamePort} of the same address.`,
    );
    this.say(
      line ? `The customer’s line carries ${line}.` : 'The customer’s line is not limited: this kernel has no tbf.',
    );
  }

  header(): void {
    this.say('');
    this.say(`        ${columns.map((name, index) => name.padStart(widths[index] as number)).join('')}`);
  }

  /** The running second is redrawn on a terminal; a log gets only the finished one. */
  second(second: LabSecond, finished: boolean): void {
    if (!this.live && !finished) return;
    const row = this.row(second);
    this.output.write(this.live ? `\r\x1b[K${row}${finished ? '\n' : ''}` : `${row}\n`);
  }

  posted(answerMs: number): void {
    this.say(
      `POST /firewall/rule {dst ${demoTarget}, udp, source port ${floodPort}, drop}: answered in ${answerMs.toFixed(1)} ms`,
    );
  }

  stopped(stoppedMs: number): void {
    this.say(
      stoppedMs > 0
        ? `The last flood packet reached the customer ${stoppedMs.toFixed(0)} ms after the API’s answer.`
        : 'No flood packet reached the customer after the API’s answer.',
    );
  }

  summary(result: LabResult): void {
    if (result.interrupted) {
      this.say('Interrupted.');
      return;
    }
    const loss = (phase: LabSecond['phase']): string =>
      percent(lossOf(result.seconds.filter((s) => s.phase === phase)));
    this.say('');
    this.say(
      `Players’ loss: ${loss('flood')} under the flood, ${loss('rule')} with the rule, ${loss('after')} without it again.`,
    );
    if (result.stoppedMs === undefined) this.say('The rule did NOT stop the flood.');
    if (result.resumedMs !== undefined) {
      this.say(`Flood back at the customer ${result.resumedMs.toFixed(0)} ms after the deletion’s answer.`);
    }
  }

  private row(second: LabSecond): string {
    const values = [count(second.arrived), count(second.dropped), count(second.delivered), percent(lossOf([second]))];
    const label = { flood: 'no rule', rule: 'rule on', after: 'no rule' }[second.phase];
    return `${label.padEnd(8)}${values.map((value, index) => value.padStart(widths[index] as number)).join('')}`;
  }
}

function lossOf(seconds: readonly LabSecond[]): number {
  const sent = seconds.reduce((sum, second) => sum + second.legitimateSent, 0);
  const delivered = seconds.reduce((sum, second) => sum + second.legitimateDelivered, 0);
  return sent === 0 ? 0 : Math.max(0, 1 - delivered / sent);
}

function count(value: number): string {
  return value.toLocaleString('en-US');
}

function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}
