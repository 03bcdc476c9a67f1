import { describe, expect, test } from 'vitest';
import { ACCT_1, ACCT_3 } from './fixtures/client.ts';
import { quickest } from './fixtures/databases.ts';
import { type DocumentParameter, lists } from './fixtures/document.ts';
import { usePlatform } from './fixtures/platform.ts';

/** Principals of an Account that has nothing, of each kind that the gateway reports. */
const WITH_NOTHING: Readonly<Record<string, Record<string, string>>> = {
  'a Person': { 'x-principal-id': 'person_9', 'x-principal-type': 'Person' },
  'a Person with an Organization': {
    'x-organization-id': 'org_9',
    'x-principal-id': 'person_9',
    'x-principal-type': 'Person',
  },
  'a ServiceAccount': { 'x-principal-id': 'svc_9', 'x-principal-type': 'ServiceAccount' },
  'a ServiceAccount of an Organization': {
    'x-organization-id': 'org_9',
    'x-principal-id': 'svc_org_9',
    'x-principal-type': 'ServiceAccount',
  },
  'a caller without a principal': {},
};

/** A Person with an Organization, and a ServiceAccount without one. */
const WITH_DATA = [ACCT_1, ACCT_3];

/** The deliveries belong to one subscription, which nobody else reads. */
const ofAnybody = lists.filter(({ path }) => !path.includes('{'));

/** Each list, as it is and with each of its filters and modes. */
const questions = ofAnybody.flatMap(({ path, parameters }) => questionsOf(path, parameters));

function questionsOf(path: string, parameters: readonly DocumentParameter[]): string[] {
  const ways = parameters.filter(({ name }) => name.startsWith('filter[') || name === 'page[mode]');
  return [path, ...ways.map(({ name, schema }) => `${path}?${name}=${filterValue(schema)}`)];
}

function filterValue(schema: DocumentParameter['schema']): string {
  if (Array.isArray(schema.enum)) return String(schema.enum[0]);
  if (schema.type === 'boolean') return 'true';
  return schema.format === 'date-time' ? '2026-01-05T09:00:00Z' : 'none';
}

describe.each([quickest])('on $name', (database) => {
  const platform = usePlatform(database);

  test.each(Object.entries(WITH_NOTHING))('%s with nothing to see gets empty pages', async (_, principal) => {
    const client = platform.as({ 'x-account-id': 'acct_9', ...principal });
    for (const { id, path } of ofAnybody) {
      const { status, body } = await client.get(path);
      expect([path, status, body.detail]).toEqual([path, 200, undefined]);
      if (id !== 'listWebhookEventTypes') expect([path, body.data]).toEqual([path, []]);
      expect([path, body.pagination.nextPageToken]).toEqual([path, '']);
      expect([undefined, body.data.length]).toContain(body.pagination.totalSize);
    }
  });

  test('every filter and mode of every list is answered with a page', async () => {
    const nothing = { 'x-account-id': 'acct_9', ...WITH_NOTHING['a Person'] };
    for (const principal of [nothing, ...WITH_DATA]) {
      const client = platform.as(principal);
      const answers = await Promise.all(questions.map((question) => client.get(question)));
      const refused = answers.flatMap(({ status, body }, index) =>
        status === 200 ? [] : [[questions[index], status, body.detail]],
      );
      expect(refused).toEqual([]);
    }
  });
});
