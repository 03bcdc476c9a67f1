import { existsSync, mkdtempSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { loadAll } from 'js-yaml';
import { expect, it } from 'vitest';
import { limitsSchema } from '../src/config/files/limits/limits-schema.ts';
import { parseLimits } from '../src/config/files/limits/parse-limits.ts';
import { readSettings } from '../src/config/load.ts';
import { isMapping } from '../src/config/reader/schema-node.ts';
import { settingsSchema } from '../src/config/settings/settings.ts';
import { PROBLEM_CODES, problemBody, Refusal } from '../src/domain/problems.ts';

const PLACES = ['.', 'lua', 'bench', 'helm/weir', 'test/cluster'];

const pages = [
  ...PLACES.flatMap((folder) => readdirSync(folder).map((name) => join(folder, name))),
  ...readdirSync('docs', { recursive: true, encoding: 'utf8' }).map((name) => join('docs', name)),
].filter((path) => path.endsWith('.md'));

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
  if (!statSync(target).isDirectory()) return anchor === undefined || anchorsOf(target).has(anchor);
  return anchor === undefined;
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

it('every file that a page names in code exists', () => {
  // The results name the files of their day.
  const named = pages
    .filter((page) => page !== 'bench/RESULTS.md')
    .flatMap((page) =>
      [...withoutCode(page).matchAll(/`((?:src|test|scripts|platform\/src)\/[\w./-]+)`/g)].map(
        ([, path = '']) => ({ page, path }),
      ),
    );
  expect(named.length).toBeGreaterThan(40);
  expect(named.filter(({ path }) => !existsSync(path))).toEqual([]);
});

/** Blocks of YAML outside of the recipes, whose tests run them. What a reader has to fill in is `…`. */
const yamlBlocks = pages
  .filter((page) => !page.startsWith('docs/recipes/'))
  .flatMap((page) =>
    [...readFileSync(page, 'utf8').matchAll(/^```yaml\n([\s\S]*?)^```/gm)].map(([, text = '']) => ({
      page,
      text,
      sections: Object.keys(loadAll(text).find(isMapping) ?? {}),
    })),
  )
  .filter(({ text }) => !/^# values\.yaml|…/m.test(text));

/** The blocks that say that they are of this file, or that have only its sections and name no other file. */
function blocksOf(file: string, { properties }: { readonly properties: object }) {
  return yamlBlocks.filter(({ text, sections }) => {
    const [, named] = /^# ([\w.-]+\.ya?ml)/.exec(text) ?? [];
    return named === undefined ? sections.every((one) => Object.hasOwn(properties, one)) : named === file;
  });
}

it('every limits file of the pages is valid', () => {
  const blocks = blocksOf('limits.yaml', limitsSchema);
  expect(blocks.length).toBeGreaterThan(12);
  for (const { page, text } of blocks) {
    const { rows, principals } = parseLimits(text, page);
    expect(rows.length + principals.size).toBeGreaterThan(7);
  }
});

it('every weir.yaml of the pages is valid', () => {
  const file = join(mkdtempSync(join(tmpdir(), 'weir-test-')), 'weir.yaml');
  const limits = blocksOf('limits.yaml', limitsSchema);
  const blocks = blocksOf('weir.yaml', settingsSchema).filter((block) => !limits.includes(block));
  expect(blocks.length).toBeGreaterThan(10);
  for (const { page, text } of blocks) {
    writeFileSync(file, text);
    // A page names the variable of a secret instead of writing the secret down.
    const env = text.includes('introspection') ? { WEIR_IDENTITY_CLIENT_SECRET: 'secret' } : {};
    expect(readSettings(file, env).problems, page).toEqual([]);
  }
});

it('every block of YAML or JSON can be read, and every Kubernetes object in one has a name', () => {
  const blocks = pages.flatMap((page) =>
    [...readFileSync(page, 'utf8').matchAll(/^```(?:yaml|json)\n([\s\S]*?)^```/gm)].map(([, text = '']) => ({
      page,
      documents: loadAll(text),
    })),
  );
  expect(blocks.length).toBeGreaterThan(50);
  const objects = blocks.flatMap(({ page, documents }) =>
    documents
      .filter((one) => isMapping(one) && 'apiVersion' in one)
      .map((one) => ({ page, ...(one as { kind?: string; metadata?: { name?: string } }) })),
  );
  expect(objects.length).toBeGreaterThan(10);
  expect(objects.filter(({ kind, metadata }) => !kind || !metadata?.name)).toEqual([]);
});

it('README.md has at most 110 lines, and none above 140 characters', () => {
  const lines = readFileSync('README.md', 'utf8').split('\n');
  expect(lines.length).toBeLessThanOrEqual(111);
  expect(lines.filter((line) => line.length > 140)).toEqual([]);
});

it('docs/README.md leads to every page, some by way of the README of a folder', () => {
  const indexes = pages.filter((page) => /^docs\/(.*\/)?README\.md$/.test(page));
  const linked = indexes.flatMap((index) =>
    [...readFileSync(index, 'utf8').matchAll(/\]\(([^)#\s]+)/g)].map(([, link = '']) =>
      join(dirname(index), link),
    ),
  );
  const elsewhere = new Set(['README.md', 'docs/README.md']);
  const isReached = (page: string) =>
    linked.includes(page) ||
    (linked.includes(dirname(page)) && (indexes.includes(page) || dirname(page) === 'docs/decisions'));
  expect(pages.filter((page) => !elsewhere.has(page) && !isReached(page))).toEqual([]);
});

it.each(['package.json', 'platform/package.json'])('docs/dependencies.md has each package of %s', (file) => {
  const page = readFileSync('docs/dependencies.md', 'utf8');
  const { dependencies, devDependencies } = JSON.parse(readFileSync(file, 'utf8')) as {
    readonly dependencies: object;
    readonly devDependencies: object;
  };
  const names = Object.keys({ ...dependencies, ...devDependencies });
  expect(names.filter((name) => !page.includes(`\`${name}\``))).toEqual([]);
});

it('the lock file has no download addresses, so that it works with any registry', () => {
  const lock = readFileSync('package-lock.json', 'utf8');
  expect([...lock.matchAll(/"resolved": "(\w+:[^"]*)"/g)].map(([, address]) => address)).toEqual([]);
});

it('every code and every type URI is in docs/errors.md', () => {
  const page = readFileSync('docs/errors.md', 'utf8');
  for (const code of PROBLEM_CODES) {
    const { type } = JSON.parse(problemBody(new Refusal(code, ''), 'id', '').text) as { type: string };
    expect(page).toContain(`| [\`${code}\`](#${code.toLowerCase()}) | \`${type}\` |`);
    expect(page).toContain(`\n## ${code}\n`);
  }
});

/** The texts that clients get in `detail`: string literals that are sentences. The text of a 429 is put together of its parts. */
function detailsIn(file: string): readonly string[] {
  const code = readFileSync(file, 'utf8').replace(/^\s*(?:\/\/|\*|\/\*).*$/gm, '');
  return [...code.matchAll(/(['`])([A-Z](?:(?!\1).)* (?:(?!\1).)*\.)\1/g)].map(([, , text = '']) => text);
}

const ANSWERING = [
  'src/domain',
  'src/http/message',
  'src/stages',
  'src/http/server',
  'src/gateway/upstream',
].flatMap((folder) =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && name !== 'limit-text.ts')
    .map((name) => join(folder, name)),
);

it('the first sentence of every detail is in docs/errors.md', () => {
  const page = readFileSync('docs/errors.md', 'utf8');
  const details = [...ANSWERING, 'src/gateway/clients.ts', 'src/gateway/entrance.ts'].flatMap(detailsIn);
  expect(details.length).toBeGreaterThan(40);
  const missing = details.filter((detail) => {
    const [sentence = ''] = detail.split(/\. (?=[A-Z])/);
    return sentence.split(/\$\{[^}]*\}/).some((part) => !page.includes(part.trim()));
  });
  expect(missing).toEqual([]);
});

/** The texts of log lines that are written as literals. */
function loggedIn(file: string): readonly string[] {
  const calls = readFileSync(file, 'utf8').matchAll(
    /\.(?:info|warn|error|fatal)\([^;]*?(['`])((?:(?!\1)[^\\;])+)\1,?\s*\)/g,
  );
  // What has neither a space nor a dot is a section of INFO that Redis is asked for.
  return [...calls].map(([, , text = '']) => text).filter((text) => /[ .]/.test(text));
}

it('every line that the gateway logs is in docs/access-log.md', () => {
  const page = readFileSync('docs/access-log.md', 'utf8');
  const files = readdirSync('src', { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && !name.startsWith('commands/'))
    .map((name) => join('src', name));
  const logged = files.flatMap(loggedIn);
  expect(logged.length).toBeGreaterThan(40);
  const parts = logged.flatMap((text) => text.split(/\$\{[^}]*\}/));
  expect(parts.filter((part) => !page.includes(part.trim()))).toEqual([]);
});

it('every path of the admin port is in docs/operating/admin-port.md', () => {
  const page = readFileSync('docs/operating/admin-port.md', 'utf8');
  const files = ['src/admin', 'src/console'].flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name)),
  );
  const paths = [...files, 'src/gateway/admin.ts']
    .filter((name) => name.endsWith('.ts') && !name.includes('/browser/'))
    .flatMap((name) => readFileSync(name, 'utf8').match(/(?<=['`])\/[a-z][a-z/]*/g) ?? []);
  expect(new Set(paths).size).toBeGreaterThan(15);
  expect(paths.filter((path) => !page.includes(`\`${path}`))).toEqual([]);
});

it('every script is in lua/README.md', () => {
  const page = readFileSync('lua/README.md', 'utf8');
  const scripts = readdirSync('lua').filter((name) => name.endsWith('.lua'));
  expect(scripts.filter((name) => !page.includes(`\n| \`${name}\` |`))).toEqual([]);
});

/** The paths and the variables of all settings, from the tables that `npm run docs` makes of their schemas. */
const settingRows = readFileSync('docs/configuration.md', 'utf8').match(/^\| `.*/gm) ?? [];

/** Names in code that begin with the product's, and end with a letter. */
const OWN_NAMES = /\b(?:weir|WEIR)_\w*[a-zA-Z]/g;

it('every metric and environment variable that a page names exists', () => {
  const files = ['src', 'platform/src', 'test'].flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name)),
  );
  const texts = [...files.filter((name) => name.endsWith('.ts')), 'helm/weir/values.yaml', 'package.json'];
  const known = new Set(
    [...settingRows, ...texts.map((name) => readFileSync(name, 'utf8'))].flatMap(
      (text) => text.match(OWN_NAMES) ?? [],
    ),
  );
  const named = pages
    .filter((page) => page !== 'CHANGELOG.md')
    .flatMap((page) =>
      [...withoutCode(page).matchAll(/`((?:weir|WEIR)_\w*[a-zA-Z])[`{]/g)].map(([, name = '']) => ({
        page,
        name,
      })),
    );
  expect(named.length).toBeGreaterThan(150);
  expect(named.filter(({ name }) => !known.has(name))).toEqual([]);
});

it('every setting that a page names exists', () => {
  const settings = settingRows.map((row) => `${/^\| `([\w.]+)/.exec(row)?.[1]}.`);
  const sections = /`((?:listen|upstream|store|journal|operations|decisions|usage|cors|shutdown)\.\w+)[`:.]/g;
  // Events have such names too, and the chart has values of its own.
  const isOther = /\.(?:changed|lost|back)$/;
  const named = pages
    .filter((page) => !page.startsWith('helm/') && page !== 'CHANGELOG.md')
    .flatMap((page) => [...withoutCode(page).matchAll(sections)].map(([, path = '']) => ({ page, path })))
    .filter(({ path }) => !isOther.test(path));
  expect(named.length).toBeGreaterThan(150);
  expect(named.filter(({ path }) => !settings.some((one) => one.startsWith(`${path}.`)))).toEqual([]);
});

it('the pages about upgrades name every release that is tried', () => {
  const releases = Object.keys(JSON.parse(readFileSync('.ci/releases.json', 'utf8')) as object);
  for (const page of ['docs/operating/upgrade.md', 'docs/releasing.md']) {
    const text = readFileSync(page, 'utf8');
    expect(releases.filter((release) => !text.includes(release))).toEqual([]);
  }
});

it('the image has the programs that the pages run in a pod', () => {
  const bin = JSON.parse(readFileSync('package.json', 'utf8')).bin.weir;
  const image = readFileSync('Dockerfile', 'utf8');
  const commands = pages.flatMap((page) => [
    ...readFileSync(page, 'utf8').matchAll(/^kubectl exec .* -- (\S+)/gm),
  ]);
  expect(commands.length).toBeGreaterThan(1);
  expect(new Set(commands.map(([, program]) => program))).toEqual(new Set(['weir']));
  expect(image).toContain(`RUN ln -s /app/${bin} /usr/local/bin/weir\n`);
});

it('every change in CHANGELOG.md has one line, with a link', () => {
  const lines = readFileSync('CHANGELOG.md', 'utf8').split('\n');
  expect(lines.filter((line) => line.startsWith('- ') && !/\]\(\S+\)\)\.$/.test(line))).toEqual([]);
  expect(lines.filter((line) => /^\s/.test(line))).toEqual([]);
});
