import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';

const PLACES = ['.', 'docs', 'docs/decisions', 'lua', 'bench', 'helm/weir', 'test/cluster'];

const pages = PLACES.flatMap((folder) =>
  readdirSync(folder)
    .filter((name) => name.endsWith('.md'))
    .map((name) => join(folder, name)),
);

function withoutCode(page: string): string {
  return readFileSync(page, 'utf8').replace(/^```[\s\S]*?^```/gm, '');
}

/** The anchors that GitHub gives to the headings of a page. */
function anchorsOf(page: string): ReadonlySet<string> {
  const headings = [...withoutCode(page).matchAll(/^#{1,6} +(.*)$/gm)].map(([, text = '']) => text);
  return new Set(
    headings.map((text) =>
      text
        .toLowerCase()
        .replace(/[^\p{L}\p{N}\s_-]/gu, '')
        .replace(/\s/g, '-'),
    ),
  );
}

function isThere(page: string, link: string): boolean {
  const [path = '', anchor] = link.split('#');
  const target = path === '' ? page : join(dirname(page), path);
  if (!existsSync(target)) return false;
  return anchor === undefined || statSync(target).isDirectory() || anchorsOf(target).has(anchor);
}

it('every link between the pages leads to a file and a heading that exist', () => {
  const links = pages.flatMap((page) =>
    [...withoutCode(page).matchAll(/\]\(([^)\s]+)\)/g)]
      .map(([, link = '']) => ({ page, link }))
      .filter(({ link }) => !/^(https?|mailto):/.test(link)),
  );
  expect(links.length).toBeGreaterThan(100);
  expect(links.filter(({ page, link }) => !isThere(page, link))).toEqual([]);
});
