import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';

/** Phrases that make a reader look back for the word that they stand for. */
const STUMBLES =
  /\b(those of|that of|in place of|takes? the place of|(?<!there )(?:is|are) none|whoever|so long|of before|of which|by (itself|themselves))\b/gi;

interface Area {
  readonly name: string;
  readonly folders: readonly string[];
  readonly ending: RegExp;
  /** How many phrases are left. This number may only fall. */
  readonly ceiling: number;
}

const AREAS: readonly Area[] = [
  {
    name: 'docs',
    folders: ['.', 'docs', 'lua', 'bench', 'helm', 'test'],
    ending: /\.md$|\.openapi\.yaml$/,
    ceiling: 0,
  },
  { name: 'src', folders: ['src'], ending: /\.(ts|css|html|proto)$/, ceiling: 0 },
  { name: 'platform', folders: ['platform/src'], ending: /\.ts$/, ceiling: 0 },
  { name: 'lua', folders: ['lua'], ending: /\.lua$/, ceiling: 0 },
  { name: 'chart', folders: ['helm'], ending: /\.(ya?ml|tpl|txt|mjs)$/, ceiling: 0 },
  { name: 'examples', folders: ['examples', 'scripts'], ending: /\.(mjs|py|ts|ya?ml)$/, ceiling: 0 },
];

function filesOf({ folders, ending }: Area): readonly string[] {
  const paths = folders.flatMap((folder) =>
    readdirSync(folder, { recursive: folder !== '.', encoding: 'utf8' }).map((name) => join(folder, name)),
  );
  return paths.filter((path) => ending.test(path) && statSync(path).isFile());
}

/** Without code, and without what a tool writes from texts elsewhere. */
function proseOf(path: string): string {
  const text = readFileSync(path, 'utf8');
  if (!path.endsWith('.md')) return text;
  return text
    .replace(/<!-- (\S+):begin -->[\s\S]*?<!-- \1:end -->/g, '')
    .replace(/^```[\s\S]*?^```/gm, '')
    .replace(/`[^`\n]*`/g, '');
}

it.each(AREAS)('$name has no more stumbling phrases than before', (area) => {
  const found = filesOf(area).flatMap((path) =>
    [
      ...proseOf(path)
        .replace(/\s+(?:\*|\/\/|--|#)?\s*/g, ' ')
        .matchAll(STUMBLES),
    ].map(([phrase]) => `${path}: ${phrase}`),
  );
  const message = `Rewrite these, or lower the ceiling of ${area.name} to ${found.length}:\n${found.join('\n')}`;
  expect(found.length, message).toBe(area.ceiling);
});
