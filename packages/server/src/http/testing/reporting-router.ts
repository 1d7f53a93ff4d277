/**
 * A router as the control plane sees it: announced, enrolled, following its stream and acknowledging all that it is
 * handed, able to do what the test says. Has no kernel and no opinion. Test code only.
 */
import assert from 'node:assert/strict';
import type { AgentReport } from '@levee/contract/agent.ts';
import { openStream, post, report, type StreamClient } from '../../agents/testing/agent-client.ts';
import { waitUntil } from '../../store/testing/wait-until.ts';
import { request } from './api-fixture.ts';

export class ReportingRouter {
  readonly uuid: string;
  capabilities: readonly string[];
  failures: { uuid: string; reason: string }[] = [];
  /** While it is true nothing new is acknowledged. */
  held = false;
  readonly #url: string;
  readonly #operatorKey: string;
  readonly #key: string;
  readonly #stream: StreamClient;
  readonly #following: Promise<void>;

  private constructor(
    at: { readonly url: string; readonly operatorKey: string; readonly uuid: string; readonly key: string },
    stream: StreamClient,
    capabilities: readonly string[],
  ) {
    this.uuid = at.uuid;
    this.#url = at.url;
    this.#operatorKey = at.operatorKey;
    this.#key = at.key;
    this.#stream = stream;
    this.capabilities = capabilities;
    this.#following = this.#follow();
  }

  /** `body`: what the operator announces it with; its location is there. */
  static async start(
    url: string,
    operatorKey: string,
    body: object,
    capabilities: readonly string[],
  ): Promise<ReportingRouter> {
    const { body: made, text } = await request(url, 'POST', '/v1/operator/router', { key: operatorKey, body });
    assert.ok(made.enrollment_token, text);
    const answer = await post(url, '/agent/v1/enroll', { token: made.enrollment_token });
    const key = String(answer.body.key);
    const stream = await openStream(url, key);
    const router = new ReportingRouter({ url, operatorKey, uuid: made.uuid, key }, stream, capabilities);
    await waitUntil(() => stream.cursor !== undefined, 'the snapshot');
    return router;
  }

  /** Reports now, whether or not it is held. `more`: what it has beyond its standing. */
  async tell(more: Partial<AgentReport> = {}): Promise<void> {
    const { capabilities, failures } = this;
    const cursor = this.#stream.cursor;
    const { status } = await report(this.#url, this.#key, {
      capabilities: [...capabilities],
      failures,
      ...more,
      ...(cursor !== undefined && { cursor }),
    });
    assert.equal(status, 200);
  }

  async #follow(): Promise<void> {
    let last: string | undefined;
    while (!this.#stream.closed) {
      const fresh = () => !this.held && this.#stream.cursor !== last;
      await waitUntil(() => this.#stream.closed || fresh(), 'a line or the end', 60_000);
      if (this.#stream.closed) return;
      last = this.#stream.cursor;
      await this.tell();
    }
  }

  /** Ends its stream and removes it. */
  async stop(): Promise<void> {
    this.#stream.close();
    await this.#following;
    await request(this.#url, 'DELETE', `/v1/operator/router/${this.uuid}`, { key: this.#operatorKey });
  }
}
