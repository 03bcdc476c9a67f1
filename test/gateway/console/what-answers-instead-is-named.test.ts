import { it } from 'vitest';
import { headlineOf, SOON, useConsole } from './use-console.ts';

// Each test waits for seconds until figures are too old, so they wait at the same time.
const { start, open } = useConsole('file');

it.concurrent.for([
  {
    what: 'a sign-in page',
    answer: { contentType: 'text/html; charset=utf-8', body: '<h1>Sign in</h1>' },
    headline:
      /^A server in front of the gateway answers with text\/html \(status 200\): everything here is unknown since [\d:]{8}$/,
  },
  {
    what: 'a stream that ends at once',
    answer: { contentType: 'text/event-stream', body: '' },
    headline: /^The connection is lost: everything here is unknown since [\d:]{8}$/,
  },
])(
  '$what instead of the stream is asked for with pauses, and the headline says what answers',
  async ({ answer, headline }, { expect }) => {
    const { page } = await open(await start());
    await expect.poll(() => headlineOf(page), SOON).toBe('The replica is healthy');
    let tries = 0;
    const fromMs = performance.now();
    await page.route('**/fleet/events*', async (route) => {
      tries += 1;
      await route.fulfill(answer);
    });
    // Another window has a stream of its own.
    await page.locator('#window input[value="10m"]').check();
    await expect.poll(() => headlineOf(page), SOON).toMatch(headline);
    expect(tries).toBeGreaterThan(1);
    // No pause is shorter than three quarters of half a second.
    expect(tries).toBeLessThanOrEqual(1 + (performance.now() - fromMs) / 375);
    await page.unroute('**/fleet/events*');
    await expect.poll(() => headlineOf(page), SOON).toBe('The replica is healthy');
  },
);

it.concurrent('a sign-in page that answers for the usage of an Account is not shown as silence of the gateway', async ({
  expect,
}) => {
  const gateway = await start();
  const { page } = await open(gateway);
  await page.route('**/usage/accounts/**', (route) =>
    route.fulfill({ status: 404, contentType: 'text/html', body: '<h1>Sign in</h1>' }),
  );
  await page.goto(`${gateway.adminUrl}/#/account/acct_1`);
  const problem = page.locator('#owner > .problem');
  const text = 'A server in front of the gateway answers with text/html (status 404)';
  await expect.poll(() => problem.textContent(), SOON).toBe(text);
});
