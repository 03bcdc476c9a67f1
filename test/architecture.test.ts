import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { describe, expect, test } from 'vitest';

/** Which folders of `src` a folder may import; a folder covers its subfolders, and may always import itself. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  'src/domain': [],
  'src/validation': ['src/domain'],
  'src/config': ['src/domain'],
  'src/openapi': ['src/domain', 'src/config', 'src/validation'],
  'src/store': ['src/domain'],
  'src/identity': ['src/domain', 'src/config', 'src/store'],
  'src/gateway': ['src/domain', 'src/config', 'src/openapi', 'src/validation', 'src/store', 'src/identity'],
  'src/decisions': ['src/domain', 'src/gateway'],
  'src/admin': ['src/domain', 'src/config', 'src/store', 'src/identity', 'src/gateway'],
  'src/replay': ['src/domain', 'src/config', 'src/openapi', 'src/store', 'src/gateway'],
  'src/platform': ['src/domain', 'src/openapi'],
  'src/commands': ['src'],
  src: ['src/commands'],
};

/** Which files may import a package that shapes the whole: one place knows each of them. */
const USERS: Readonly<Record<string, RegExp>> = {
  ioredis: /^src\/store\/redis\//,
  'prom-client': /^src\/admin\/metrics\//,
  '@opentelemetry': /^src\/commands\/tracing\/(open|spans)\.ts$/,
  '@fastify/http-proxy': /^src\/gateway\/(gateway|forward)\.ts$/,
};

/** The stages, in their order: a stage imports no other stage. */
const STAGES = ['normalise', 'match', 'identify', 'authorise', 'charge', 'validate', 'forward', 'respond'];

const files = readdirSync('src', { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts'))
  .map((file) => join('src', file));

interface Import {
  readonly from: string;
  readonly to: string;
  /** Loaded when `from` is loaded: neither a type nor a dynamic import. */
  readonly isEager: boolean;
}

const imports: readonly Import[] = files.flatMap((from) => {
  const text = readFileSync(from, 'utf8');
  const found = text.matchAll(/^(?:import|export)\s+(type\s)?[^;]*?from '([^']+)';|\bimport\('([^']+)'\)/gms);
  return [...found].map(([, isType, fixed, dynamic]) => {
    const specifier = fixed ?? dynamic ?? '';
    const to = specifier.startsWith('.') ? normalize(join(dirname(from), specifier)) : specifier;
    return { from, to, isEager: fixed !== undefined && isType === undefined };
  });
});

describe('the structure of the source', () => {
  test('has one direction: a folder imports only the folders below it', () => {
    const folders = Object.keys(MAY_IMPORT).sort((a, b) => b.length - a.length);
    const folderOf = (file: string) => folders.find((folder) => file.startsWith(`${folder}/`)) ?? file;
    const wrong = imports.filter(({ from, to }) => {
      const home = folderOf(from);
      const allowed = [home, ...(MAY_IMPORT[home] ?? [])];
      return to.startsWith('src/') && !allowed.some((folder) => to.startsWith(`${folder}/`));
    });
    expect(wrong.map(({ from, to }) => `${from} imports ${to}`)).toEqual([]);
  });

  test.each(Object.entries(USERS))('keeps %s behind one door', (name, users) => {
    const importers = imports.filter(({ to }) => to === name || to.startsWith(`${name}/`));
    expect(importers.map(({ from }) => from).filter((file) => !users.test(file))).toEqual([]);
  });

  test('lets no stage import another', () => {
    const isStage = (file: string) => STAGES.some((stage) => file === `src/gateway/${stage}.ts`);
    const wrong = imports.filter(({ from, to }) => isStage(from) && isStage(to));
    expect(wrong.map(({ from, to }) => `${from} imports ${to}`)).toEqual([]);
  });

  test.each([
    ['src/main.ts', 'src/gateway/'],
    ['src/main.ts', 'src/config/settings/'],
    ['src/commands/start.ts', 'src/replay/'],
    ['src/commands/start.ts', 'src/platform/'],
    ['src/commands/start.ts', '@opentelemetry/'],
    ['src/commands/demo/demo.ts', 'pino-pretty'],
    ['src/platform/server.ts', 'src/gateway/'],
  ])('%s loads nothing of %s', (entry, foreign) => {
    const loaded = new Set([entry]);
    for (const file of loaded) {
      for (const { from, to, isEager } of imports) if (from === file && isEager) loaded.add(to);
    }
    expect([...loaded].filter((file) => file.startsWith(foreign))).toEqual([]);
  });
});
