import { readdirSync } from 'node:fs';
import { loadAll } from 'js-yaml';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { connect, type RateLimitClient } from '../fixtures/rate-limit-service.ts';
import { recipe, startRateLimitService } from '../fixtures/recipes.ts';

/** What a request has under each key of `rules.yaml`. */
const REQUEST: Readonly<Record<string, string>> = {
  remote_address: '192.0.2.7',
  client: 'first',
  path: '/search?q=a',
};

const PAGES = readdirSync('docs/recipes/descriptors')
  .filter((name) => name !== 'README.md')
  .map((name) => `descriptors/${name.replace('.md', '')}`);

let weir: Awaited<ReturnType<typeof startRateLimitService>>;
let client: RateLimitClient;

beforeAll(async () => {
  weir = await startRateLimitService('descriptors');
  client = connect(weir.envoyUrl ?? '');
});
afterAll(async () => {
  client.close();
  await weir.close();
});

it.each(PAGES)('%s: every descriptor that its proxy sends has a limit', async (page) => {
  const { domains, descriptors } = asked(filesOf(page).flatMap((text) => loadAll(text)));
  expect(descriptors).not.toEqual([]);
  expect([...new Set(domains)]).toEqual(['edge']);
  for (const keys of descriptors) {
    const entries = Object.fromEntries(keys.map((key) => [key, REQUEST[key] ?? '']));
    const { statuses } = await client.ask({ domain: 'edge', descriptors: [{ entries }] });
    expect({ keys, limit: statuses[0]?.currentLimit }).toEqual({ keys, limit: expect.anything() });
  }
});

it('a descriptor under another key has no limit', async () => {
  const { statuses } = await client.ask({
    domain: 'edge',
    descriptors: [{ entries: { 'x-client': 'first' } }],
  });
  expect(statuses[0]?.currentLimit ?? null).toBeNull();
});

/** The files of a page, without the files that it shares with others. */
function filesOf(page: string): readonly string[] {
  const shared = recipe('descriptors');
  return Object.entries(recipe(page)).flatMap(([name, text]) => (name in shared ? [] : [text]));
}

interface Asked {
  readonly domains: readonly unknown[];
  /** The keys of each descriptor. */
  readonly descriptors: readonly (readonly string[])[];
}

/** What the configuration of a proxy asks about, wherever its format has it. */
function asked(configuration: unknown): Asked {
  if (typeof configuration !== 'object' || configuration === null) return { domains: [], descriptors: [] };
  const parts = Object.entries(configuration).map(([name, value]): Asked => {
    if (name === 'domain') return { domains: [value], descriptors: [] };
    const isDescriptor = (name === 'entries' || name === 'actions') && Array.isArray(value);
    return isDescriptor ? { domains: [], descriptors: [value.map(keyOf)] } : asked(value);
  });
  return {
    domains: parts.flatMap(({ domains }) => domains),
    descriptors: parts.flatMap(({ descriptors }) => descriptors),
  };
}

/** An entry of a descriptor, as the formats of the proxies have it. */
interface Entry {
  readonly name?: string;
  readonly key?: string;
  readonly type?: string;
  readonly header?: string;
  readonly request_headers?: { readonly descriptor_key: string };
}

/** The key under which a proxy sends an entry. */
function keyOf(entry: Entry): string {
  const { name, key, type, header, request_headers: headers } = entry;
  if (type === 'Header') return header ?? '';
  if (type === 'Path') return 'path';
  if (type === 'RemoteAddress' || 'remote_address' in entry || 'remoteAddress' in entry)
    return 'remote_address';
  return name ?? key ?? headers?.descriptor_key ?? '';
}
