import { expect, test } from 'vitest';
import { PROBLEM_CODES } from '../../src/domain/problems.ts';
import { quickest } from './fixtures/databases.ts';
import { usePlatform } from './fixtures/platform.ts';

const platform = usePlatform(quickest);

test('every code of the gateway has a page, which links to nothing and shows no markup', async () => {
  for (const code of PROBLEM_CODES) {
    const slug = code.replaceAll(/(?<=[a-z])(?=[A-Z])/g, '-').toLowerCase();
    const response = await fetch(`${platform.url}/errors/${slug}`);
    const page = await response.text();
    expect([response.status, response.headers.get('content-type')], code).toEqual([
      200,
      'text/html; charset=utf-8',
    ]);
    expect(page).toContain(`<h1>${code}</h1>`);
    expect(page.replaceAll(/<code>[^<]*<\/code>/g, '').replace(/<style>[\s\S]*<\/style>/, '')).not.toMatch(
      /\]\(|\*\*|`|^\||<a /m,
    );
  }
});

test('an unknown code is a 404', async () => {
  const response = await fetch(`${platform.url}/errors/no-such-code`);
  expect(response.status).toBe(404);
  expect(await response.json()).toMatchObject({ code: 'ResourceNotFound' });
});
