import { randomUUID } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import { startGateway, type TestGateway } from '../../fixtures/gateway.ts';

export interface BusyFleet {
  readonly gateways: readonly TestGateway[];
  /** Stops the traffic and the gateways. */
  close(): Promise<void>;
}

interface Tenant {
  readonly account: string;
  readonly organization: string;
  /** Requests per tick. */
  readonly rate: number;
}

const TICK_MS = 100;

/** Ids as a payment platform's would be, without any order. */
const NAMES = [
  'northwind',
  'contoso',
  'fabrikam',
  'tailspin',
  'adatum',
  'litware',
  'proseware',
  'wingtip',
  'lucerne',
  'woodgrove',
  'trey',
  'humongous',
  'margie',
  'coho',
  'relecloud',
];

const TENANTS: readonly Tenant[] = NAMES.map((name, index) => ({
  account: `acct_${name}`,
  organization: `org_${NAMES[Math.floor(index / 2) * 2]}`,
  rate: 4.5 / (index + 1),
}));

/** Several replicas that share a Redis, and traffic of many Accounts. Some of them exceed their limits. */
export async function startBusyFleet(redisUrl: string, replicas: number): Promise<BusyFleet> {
  const store = { kind: 'redis', url: redisUrl, keyPrefix: `t-${randomUUID()}`, deadlineMs: 5_000 };
  const limits = {
    windowSeconds: 5,
    defaults: {
      'account-read': 300,
      'account-write': 150,
      'organization-read': 900,
      'organization-write': 500,
    },
    accounts: { acct_northwind: { 'account-read': 160 } },
  };
  const identities = {
    tokens: Object.fromEntries(TENANTS.map(({ account }) => [account, `svc_${account}`])),
    principals: Object.fromEntries(
      TENANTS.map(({ account }) => [`svc_${account}`, { type: 'ServiceAccount', account }]),
    ),
    accounts: Object.fromEntries(TENANTS.map(({ account, organization }) => [account, { organization }])),
  };
  const gateways = await Promise.all(
    Array.from({ length: replicas }, () => startGateway({ store, limits, identities })),
  );
  let isEnded = false;
  const traffic = Promise.all(TENANTS.map((tenant, index) => send(tenant, index, gateways, () => isEnded)));
  return {
    gateways,
    async close() {
      isEnded = true;
      await traffic;
      for (const gateway of gateways) await gateway.close();
    },
  };
}

async function send(
  { account, rate }: Tenant,
  phase: number,
  gateways: readonly TestGateway[],
  isEnded: () => boolean,
): Promise<void> {
  let due = 0;
  for (let tick = 0; !isEnded(); tick++) {
    due += rate * (1 + 0.5 * Math.sin(tick / 40 + phase));
    const calls: Promise<unknown>[] = [];
    for (; due >= 1; due--) {
      const gateway = gateways[(tick + Math.floor(due)) % gateways.length];
      const path = tick % 6 === 0 ? '/v3/reports' : '/v3/things';
      if (gateway !== undefined)
        calls.push(gateway.send('GET', path, { token: account }).then((one) => one.text()));
    }
    await Promise.allSettled(calls);
    await setTimeout(TICK_MS);
  }
}
