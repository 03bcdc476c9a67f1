import { expect, it, onTestFinished } from 'vitest';
import type { FleetTop } from '../../src/admin/fleet/fleet.ts';
import type { FleetSnapshot } from '../../src/admin/fleet/snapshot.ts';
import type { Usage } from '../../src/admin/usage/owner-usage.ts';
import { top } from '../../src/commands/top.ts';
import { usage } from '../../src/commands/usage.ts';
import { startGateway } from '../fixtures/gateway.ts';
import { runHere } from '../fixtures/run-here.ts';

/** For what a replica does once a second, on a machine that is busy. */
const SOON = { timeout: 20_000, interval: 50 };

/** Nothing listens there. */
const DEAD_STORE = { kind: 'redis', url: 'redis://127.0.0.1:1' };

it.each([
  { onStoreFailure: 'serve', refused: 0 },
  { onStoreFailure: 'reject', refused: 0 },
  { onStoreFailure: 'share', refused: 25 },
])(
  'with $onStoreFailure, top talkers, usage and the console show who sends how much',
  async ({ onStoreFailure, refused }) => {
    const gateway = await startGateway({
      store: { ...DEAD_STORE, onStoreFailure, expectedReplicas: 2 },
      limits: { accounts: { acct_3: { 'account-read': 10 } } },
    });
    onTestFinished(() => gateway.close());
    const read = async <T>(path: string) => (await (await fetch(gateway.adminUrl + path)).json()) as T;
    for (let sent = 0; sent < 30; sent++) await gateway.send('GET', '/v3/things', { token: 'lonely' });
    for (let sent = 0; sent < 3; sent++) await gateway.send('GET', '/v3/things');

    const seen = (id: string, requests: number, refused: number) => ({ id, points: 0, requests, refused });
    const ranked = [seen('acct_3', 30, refused), seen('acct_1', 3, 0)];
    await expect
      .poll(async () => (await read<FleetTop>('/usage/top?window=10m')).accounts, SOON)
      .toMatchObject({ byRequests: ranked, byPoints: ranked });
    expect((await read<FleetTop>('/usage/top?window=10m')).organizations.byRequests).toMatchObject([
      seen('org_1', 3, 0),
    ]);
    const shown = await runHere(() =>
      top({ url: gateway.adminUrl, window: '10m', by: 'requests', once: true }),
    );
    expect(shown.stdout).toMatch(
      new RegExp(`by requests\n\nAccount.*\nacct_3 +0 +30 +${refused}\nacct_1 +org_1 +0 +3 +0`),
    );

    const account = await read<Usage>('/usage/accounts/acct_3');
    expect(account).toMatchObject({
      storeProblem: 'disconnected',
      recent: { '10m': { points: 0, requests: 30, refused } },
      operations: [{ operation: 'listThings', requests: 30 }],
    });
    const printed = await runHere(() => usage('acct_3', { url: gateway.adminUrl }));
    expect(printed.stdout).toMatch(new RegExp(`^listThings +0 +30 +${refused}$`, 'm'));

    await expect
      .poll(async () => (await read<FleetSnapshot>('/fleet?window=10m')).top.accounts.byRequests, SOON)
      .toMatchObject(ranked);
  },
);
