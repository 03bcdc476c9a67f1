import { expect, it, onTestFinished } from 'vitest';
import { ALICE, serve } from '../fixtures/recipe-service.ts';
import { recipe, startRecipe, writeFolder } from '../fixtures/recipes.ts';
import { startUpstream } from '../fixtures/upstream.ts';

/** Starts a recipe, and returns its URL and how to read what acct_a has used. */
async function start(page: string, upstreamUrl: string) {
  const weir = await startRecipe(page, { env: { WEIR_UPSTREAM_URL: upstreamUrl } });
  onTestFinished(() => weir.close());
  const used = async (bucket: string) => {
    const { buckets } = (await (await fetch(`${weir.adminUrl}/usage/accounts/acct_a`)).json()) as {
      readonly buckets: readonly { readonly bucket: string; readonly used: number }[];
    };
    return buckets.find((one) => one.bucket === bucket)?.used;
  };
  return { url: weir.url, used };
}

it('a language model: each answer costs its tokens, streamed or not', async () => {
  const folder = await writeFolder(recipe('language-model'));
  const model = await serve(folder, process.execPath, () => ['server.mjs']);
  const { url, used } = await start('language-model', model);
  const ask = async (body: object) =>
    fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { ...ALICE, 'Content-Type': 'application/json' },
      body: JSON.stringify({ messages: [], ...body }),
    });
  const whole = await ask({ max_completion_tokens: 500 });
  expect(whole.headers.get('RateLimit')).toContain('"account-write";r=399500');
  expect(await whole.json()).toMatchObject({ usage: { total_tokens: 15 } });
  await expect.poll(() => used('account-write')).toBe(15);
  const streamed = await ask({ stream: true, stream_options: { include_usage: true } });
  expect(streamed.headers.get('RateLimit')).toContain(`"account-write";r=${400_000 - 15 - 4_000}`);
  expect(await streamed.text()).toMatch(/"total_tokens":15.*\n\ndata: \[DONE\]\n\n$/);
  await expect.poll(() => used('account-write')).toBe(30);
  await (await ask({ stream: true, max_completion_tokens: 100 })).text();
  await expect.poll(() => used('account-write')).toBe(130);
});

it('bytes: a download costs a point for each KiB', async () => {
  const files = await startUpstream((_, response) => response.end(Buffer.alloc(10_000)));
  onTestFinished(() => files.close());
  const { url, used } = await start('bytes', files.url);
  await (await fetch(`${url}/files/report.pdf`, { headers: ALICE })).arrayBuffer();
  await expect.poll(() => used('download-day')).toBe(10);
});

it('failures are free: a 5xx, and a 404 of a search', async () => {
  const api = await startUpstream(({ url }, response) => {
    response.writeHead(Number(new URL(url ?? '', 'http://a').searchParams.get('answer'))).end();
  });
  onTestFinished(() => api.close());
  const { url, used } = await start('free-failures', api.url);
  for (const path of ['/search?answer=500', '/search?answer=404', '/items?answer=503', '/search?answer=200'])
    await (await fetch(url + path, { headers: ALICE })).text();
  await expect.poll(() => used('account-read')).toBe(5);
  await (await fetch(`${url}/items?answer=404`, { headers: ALICE })).text();
  await expect.poll(() => used('account-read')).toBe(6);
});
