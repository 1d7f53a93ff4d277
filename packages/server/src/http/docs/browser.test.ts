import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { type Browser, chromium, type Page } from 'playwright-core';
import { type ApiFixture, startApi } from '../testing/api-fixture.ts';
import { buildWorld, type World } from '../testing/world.ts';

const executablePath = '/usr/bin/chromium';
const skip = existsSync(executablePath) ? false : 'needs the Debian package chromium';
const patienceMilliseconds = 30_000;

describe('the description in a real browser', { skip }, () => {
  let api: ApiFixture;
  let world: World;
  let browser: Browser | undefined;
  let page: Page;
  const requested: URL[] = [];
  const complaints: string[] = [];

  before(async () => {
    api = await startApi();
    world = await buildWorld(api);
    // Chromium's own sandbox needs what a container or root does not have; it only ever loads this one page.
    const args = ['--no-sandbox', '--disable-dev-shm-usage'];
    browser = await chromium.launch({ executablePath, args, timeout: patienceMilliseconds });
    page = await browser.newPage({ viewport: { width: 1400, height: 1000 } });
    page.setDefaultTimeout(patienceMilliseconds);
    page.on('request', (request) => requested.push(new URL(request.url())));
    // A breach of the policy is a complaint of the console's.
    page.on('console', (message) => {
      if (['error', 'warning'].includes(message.type())) complaints.push(message.text());
    });
    page.on('pageerror', (error) => complaints.push(String(error)));
    await page.goto(`${api.url}/docs`);
  });
  after(async () => {
    await browser?.close();
    await api.stop();
  });

  test('it lists every operation that is served', async () => {
    await page.getByText('Create a firewall rule').first().waitFor();
    const text = await page.evaluate('document.body.innerText');
    const absent = api.api.operations.filter(({ summary }) => !String(text).includes(summary));
    assert.deepEqual(
      absent.map(({ id }) => id),
      [],
    );
  });

  test('tags that are in lower case are shown as headings are', async () => {
    const text = String(await page.evaluate('document.body.innerText'));
    for (const heading of ['DDoS Mitigation', 'Network', 'Extensions', 'Operator']) {
      assert.match(text, new RegExp(`^${heading}$`, 'm'));
    }
    assert.doesNotMatch(text, /^(extension|operator)$/m);
  });

  test('an example is sent with a key that was typed in, and carried out', async () => {
    await page.getByLabel('Value').first().fill(world.holders.user.key);
    await page.getByRole('button', { name: /Test Request \(post \/firewall\/rule\)/ }).click();
    const answered = page.waitForResponse(`${api.url}/v1/firewall/rule`);
    await page.getByRole('dialog').getByRole('button', { name: /^Send/ }).first().click();
    const response = await answered;
    assert.equal(response.status(), 200, await response.text());
    const sent = response.request().headers();
    assert.deepEqual(
      [sent['idempotency-key'], sent.prefer],
      [undefined, undefined],
      'what may be sent is not filled in',
    );
    const { body } = await api.call('listFirewallRules', {}, { key: world.holders.user.key });
    assert.equal(body.length, 1);
    assert.deepEqual(body[0].uuid, ((await response.json()) as { uuid: string }).uuid);
  });

  test('nothing leaves the origin, and nothing tried to', () => {
    assert.ok(requested.length >= 5, String(requested));
    const elsewhere = requested.filter(({ protocol, origin }) => protocol !== 'data:' && origin !== api.url);
    assert.deepEqual(elsewhere.map(String), []);
    assert.deepEqual(complaints, []);
  });

  test('a page that tried to leave the origin could not', async () => {
    const outcome = await page.evaluate(`(async () => {
      const fetched = await fetch('http://127.0.0.2:1/').then(() => 'sent', (error) => String(error));
      const image = new Image();
      const loaded = await new Promise((resolve) => {
        document.addEventListener('securitypolicyviolation', (event) => resolve(event.effectiveDirective), { once: true });
        image.src = 'http://127.0.0.2:1/pixel.png';
        image.onload = () => resolve('loaded');
      });
      return [fetched, loaded];
    })()`);
    assert.match(String(outcome), /^TypeError.*,(connect|img)-src$/);
    assert.ok(
      complaints.some((text) => text.includes('connect-src')),
      String(complaints),
    );
  });
});
