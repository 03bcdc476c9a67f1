import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import { LIMITS, WINDOW_SECONDS } from '../fixtures/configuration.ts';
import { sendTo, startGateway } from '../fixtures/gateway.ts';
import { startUpstream } from '../fixtures/upstream.ts';
import { startWeir } from '../fixtures/weir-process.ts';

const WITHIN = { timeout: 60_000, interval: 20 };

/** About 1 MiB, the most that a ConfigMap holds. */
const OVERRIDES = 17_000;

function overridesOf(accountRead: number, length = OVERRIDES): string {
  const lines = Array.from({ length }, (_, index) => `  acct_${index}: { account-read: ${accountRead} }`);
  return ['accounts:', ...lines].join('\n');
}

it('a file of overrides with the maximum size of a ConfigMap is loaded without a failed request', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'weir-many-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const files = { limits: join(folder, 'limits.yaml'), overrides: join(folder, 'overrides.yaml') };
  writeFileSync(files.limits, JSON.stringify({ windowSeconds: WINDOW_SECONDS, defaults: LIMITS }));
  writeFileSync(files.overrides, overridesOf(1_000_000));
  const upstream = await startUpstream();
  onTestFinished(() => upstream.close());
  const weir = await startWeir({
    upstreamUrl: upstream.url,
    settings: {
      limits: { file: files.limits, overrides: [files.overrides] },
      log: { level: 'info', access: false },
    },
  });
  onTestFinished(() => weir.close());

  let isLoading = true;
  const statuses = new Set<number>();
  const policies = new Set<string | null>();
  const client = async () => {
    while (isLoading) {
      const answer = await sendTo(weir.url, 'GET', '/v3/things', { token: 'lonely' });
      await answer.arrayBuffer();
      statuses.add(answer.status);
      policies.add(answer.headers.get('RateLimit-Policy')?.split(',')[0] ?? null);
    }
  };
  const clients = Array.from({ length: 4 }, client);
  onTestFinished(async () => {
    isLoading = false;
    await Promise.allSettled(clients);
  });
  await vi.waitFor(() => expect(policies.size).toBe(1), WITHIN);
  writeFileSync(files.overrides, overridesOf(2_000_000));
  await vi.waitFor(() => expect(policies.size).toBe(2), WITHIN);
  isLoading = false;
  await Promise.all(clients);
  expect([...policies]).toEqual(['"account-read";q=1000000;w=60', '"account-read";q=2000000;w=60']);
  expect([...statuses]).toEqual([200]);
});

it('a file with a problem is refused entirely, with the line', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'weir-many-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'limits.yaml');
  writeFileSync(file, overridesOf(1_000_000, 2_000));
  const gateway = await startGateway({ settings: { limits: { file }, log: { level: 'info' } } });
  onTestFinished(() => gateway.close());
  writeFileSync(file, `${overridesOf(2_000_000, 2_000)}\n  acct_last: { account-read: many }\n`);
  await vi.waitFor(
    () =>
      expect(gateway.lines.join('\n')).toContain(`${file}:2002: accounts.acct_last.account-read: must be`),
    WITHIN,
  );
});
