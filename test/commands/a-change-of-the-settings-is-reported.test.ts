import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { startGateway, type TestGateway } from '../fixtures/gateway.ts';

const WITHIN = { timeout: 60_000, interval: 20 };
let weir: TestGateway;

beforeEach(async () => {
  weir = await startGateway({ settings: { log: { level: 'info', access: true } } });
});
afterEach(() => weir.close());

/** The watches share one clock, so once the limits are taken, the settings were looked at as well. */
async function untilLookedAt(): Promise<void> {
  const limits = join(dirname(weir.settingsFile), 'limits.yaml');
  writeFileSync(limits, readFileSync(limits, 'utf8').replace('"account-read": 20', '"account-read": 21'));
  await untilLogged('changed limits are in force');
}

const change = (replaced: string, by: string) =>
  writeFileSync(weir.settingsFile, readFileSync(weir.settingsFile, 'utf8').replace(replaced, by));
const untilLogged = (text: string) =>
  vi.waitFor(() => expect(weir.lines.filter((line) => line.includes(text))).toHaveLength(1), WITHIN);

it('weir.yaml: nothing is reported while it stays the same', async () => {
  await untilLookedAt();
  expect(weir.lines.filter((line) => line.includes('has changed'))).toEqual([]);
});

it('weir.yaml: a change has no effect, and one log line reports that it needs a restart', async () => {
  change('"level": "info"', '"level": "warn"');
  await untilLogged('weir.yaml has changed: restart to apply it');
  const before = weir.lines.length;
  await fetch(weir.url);
  await vi.waitFor(() => expect(weir.lines.length).toBeGreaterThan(before), WITHIN);
});

it('weir.yaml: an invalid change is reported with its problems', async () => {
  change('"level": "info"', '"level": "loud"');
  await untilLogged('weir.yaml has changed and is invalid: weir would not start with it');
  expect(weir.lines.join()).toContain('log.level');
});
