import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { basename, dirname, join, normalize } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { sharedRedisUrl } from './fixtures/redis-url.ts';

/**
 * Which folders a folder may import, types included. A folder covers its subfolders, and may always import itself. Each folder imports
 * only folders that are listed above it, so there are no circles.
 */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  'src/domain': [],
  'src/http': ['src/domain'],
  'src/store': ['src/domain'],
  'src/config': ['src/domain'],
  'src/facts': ['src/domain', 'src/store', 'src/config'],
  'src/identity': ['src/domain', 'src/http', 'src/config', 'src/facts'],
  'src/operations': ['src/domain', 'src/config'],
  'src/stages': ['src/domain', 'src/http', 'src/store', 'src/facts', 'src/identity', 'src/operations'],
  'src/observe': [
    ...['src/domain', 'src/http', 'src/store', 'src/config', 'src/facts', 'src/identity', 'src/stages'],
  ],
  'src/admin': [
    ...['src/domain', 'src/store', 'src/config', 'src/facts', 'src/identity', 'src/stages', 'src/observe'],
  ],
  'src/replay': ['src/domain', 'src/store', 'src/config', 'src/operations', 'src/stages'],
  'src/console': ['src/domain', 'src/observe', 'src/admin', 'src/replay'],
  'src/gateway': [
    ...['src/domain', 'src/http', 'src/store', 'src/config', 'src/operations', 'src/stages'],
    ...['src/observe', 'src/admin', 'src/console'],
  ],
  'src/process': [
    ...[
      'src/domain',
      'src/http',
      'src/store',
      'src/config',
      'src/facts',
      'src/identity',
      'src/operations',
      'src/stages',
    ],
    ...['src/observe', 'src/admin', 'src/gateway'],
  ],
  'src/commands': [
    ...['src/domain', 'src/store', 'src/config', 'src/facts', 'src/identity', 'src/operations', 'src/stages'],
    ...['src/observe', 'src/admin', 'src/replay', 'src/console', 'src/process'],
  ],
  src: ['src/config', 'src/process', 'src/commands'],
  'platform/src': [],
};

/**
 * Which folders within a folder of `src` may import their neighbours there. Each may import its own subfolders, and the files of the
 * folders that it is in.
 */
const MAY_IMPORT_BESIDE: Readonly<Record<string, readonly string[]>> = {
  'src/console/browser/actions': ['src/console/browser/widgets'],
  'src/console/browser/report': ['src/console/browser/widgets', 'src/console/report'],
  'src/admin/facts': ['src/admin/find'],
  'src/admin/find': ['src/admin/fleet', 'src/admin/why'],
  'src/admin/history': ['src/admin/facts', 'src/admin/fleet'],
  'src/admin/why': ['src/admin/fleet'],
  'src/admin/usage': ['src/admin/facts', 'src/admin/find', 'src/admin/fleet'],
  'src/commands/check': ['src/commands/costs', 'src/commands/terminal'],
  'src/commands/costs': ['src/commands/terminal'],
  'src/commands/replay': ['src/commands/terminal'],
  'src/config/checks': ['src/config/files', 'src/config/reader', 'src/config/settings'],
  'src/config/files': ['src/config/reader', 'src/config/settings'],
  'src/config/files/descriptors': ['src/config/files/limits'],
  'src/config/files/limits': ['src/config/files/identities'],
  'src/config/kubernetes': ['src/config/reader', 'src/config/settings'],
  'src/config/settings': ['src/config/reader'],
  'src/gateway/upstream': ['src/gateway/response-cost'],
  'src/http/client': ['src/http/message'],
  'src/http/message/fields': ['src/http/message/head'],
  'src/http/server': ['src/http/message'],
  'src/identity/directory': ['src/identity/provider'],
  'src/identity/jwt': ['src/identity/provider'],
  'src/observe/metrics': ['src/observe/notify'],
  'src/observe/notify': ['src/observe/log'],
  'src/observe/otel': ['src/observe/log', 'src/observe/metrics'],
  'src/operations/documents': ['src/operations/validation'],
  'src/replay/suggest': ['src/replay/input', 'src/replay/measure'],
  'src/store/redis': ['src/store/dispatch', 'src/store/in-flight', 'src/store/journal'],
  'src/store/redis/shared': ['src/store/redis/connection'],
};

/** Which files may import a package or a folder that shapes the whole: one place knows each of them. */
const USERS: Readonly<Record<string, RegExp>> = {
  ioredis: /^src\/store\/redis\//,
  'prom-client': /^src\/observe\/metrics\/prometheus-client\.ts$/,
  '@grpc': /^src\/gateway\/decisions\/envoy\//,
  protobufjs: /^src\/gateway\/decisions\/envoy\//,
  '@opentelemetry': /^src\/observe\/otel\/(open-(metrics|telemetry)|spans)\.ts$/,
  'src/console/browser': /^src\/console\/browser\//,
  'src/store/redis': /^src\/store\/(open-store\.ts|redis\/)/,
  '@fastify/http-proxy': /^src\/gateway\/clients\.ts$/,
};

/** The stages, in their order: a stage imports no other stage. */
const STAGES = [
  ...['normalise', 'match', 'identify', 'authorise', 'charge', 'validate'].map(
    (stage) => `src/stages/${stage}.ts`,
  ),
  'src/gateway/upstream/forward.ts',
  'src/stages/respond.ts',
];

/** Imported where it is installed, which it is only in a checkout. */
const OPTIONAL = ['pino-pretty'];

/** The folders of the two programs, each installed with only the packages of its own package.json. */
const PACKAGES = { src: 'package.json', 'platform/src': 'platform/package.json' };

const files = Object.keys(PACKAGES).flatMap((folder) =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .map((file) => join(folder, file)),
);

const isWithin = (path: string, folder: string) => `${path}/`.startsWith(`${folder}/`);

/** The folder below `src` that a file is in. */
const roomOf = (file: string) => file.split('/').slice(0, 2).join('/');

interface Import {
  readonly from: string;
  readonly to: string;
  readonly isType: boolean;
  /** Loaded when `from` is loaded: neither a type nor a dynamic import. */
  readonly isEager: boolean;
}

const imports: readonly Import[] = files.flatMap((from) => {
  const text = readFileSync(from, 'utf8');
  const found = text.matchAll(/^(?:import|export)\s+(type\s)?[^;]*?from '([^']+)';|\bimport\('([^']+)'\)/gms);
  return [...found].map(([, isType, fixed, dynamic]) => {
    const specifier = fixed ?? dynamic ?? '';
    const to = specifier.startsWith('.') ? normalize(join(dirname(from), specifier)) : specifier;
    return {
      from,
      to,
      isType: isType !== undefined,
      isEager: fixed !== undefined && isType === undefined,
    };
  });
});

const folders = Object.keys(MAY_IMPORT).sort((a, b) => b.length - a.length);

/** The folder of `MAY_IMPORT` that a file is in. */
const folderOf = (file: string) => folders.find((folder) => file.startsWith(`${folder}/`)) ?? file;

const isImported = (home: string, other: string) =>
  imports.some(({ from, to }) => folderOf(from) === home && folderOf(to) === other);

/** In how many files of `src` a plain GET may run, by its store. The bound only falls. */
const MOST_FILES = { memory: 55, Redis: 70 };

describe('the structure of the source', () => {
  test('has one direction: a folder imports only the folders below it', () => {
    const wrong = imports.filter(({ from, to }) => {
      const home = folderOf(from);
      const allowed = [home, ...(MAY_IMPORT[home] ?? [])];
      return /^(src|platform)\//.test(to) && !allowed.some((folder) => to.startsWith(`${folder}/`));
    });
    expect(wrong.map(({ from, to }) => `${from} imports ${to}`)).toEqual([]);
  });

  test('lets a folder import the folders beside it only as listed, and each listed one is imported', () => {
    const beside = imports.filter(({ from, to }) => {
      const [home, other] = [dirname(from), dirname(to)];
      const isInRoom = from.startsWith('src/') && roomOf(from) === roomOf(to);
      return isInRoom && !isWithin(home, other) && !isWithin(other, home);
    });
    const listed = Object.entries(MAY_IMPORT_BESIDE).flatMap(([home, others]) =>
      others.map((other) => ({ home, other })),
    );
    const wrong = beside.filter(
      ({ from, to }) => !listed.some(({ home, other }) => isWithin(from, home) && isWithin(to, other)),
    );
    expect(wrong.map(({ from, to }) => `${from} imports ${to}`)).toEqual([]);
    const unused = listed.filter(
      ({ home, other }) => !beside.some(({ from, to }) => isWithin(from, home) && isWithin(to, other)),
    );
    expect(unused).toEqual([]);
  });

  test('has 2 to 15 files in a folder', () => {
    const entries = Object.keys(PACKAGES).flatMap((folder) =>
      readdirSync(folder, { recursive: true, withFileTypes: true }),
    );
    const folders = [...new Set(entries.map(({ parentPath }) => parentPath))];
    const wrong = folders.filter((folder) => {
      const within = entries.filter(({ parentPath }) => parentPath === folder);
      return within.length < 2 || within.filter((entry) => entry.isFile()).length > 15;
    });
    expect(wrong).toEqual([]);
  });

  test('lists each folder above the folders that import it, and no import that is not there', () => {
    const order = Object.keys(MAY_IMPORT);
    const wrong = Object.entries(MAY_IMPORT).flatMap(([home, others]) =>
      others.filter((other) => order.indexOf(other) >= order.indexOf(home) || !isImported(home, other)),
    );
    expect(wrong).toEqual([]);
  });

  test.each(Object.entries(USERS))('keeps %s behind one door', (name, users) => {
    const importers = imports.filter(({ to }) => to === name || to.startsWith(`${name}/`));
    expect(importers.map(({ from }) => from).filter((file) => !users.test(file))).toEqual([]);
  });

  test.each(Object.entries(PACKAGES))('%s imports only what %s lists', (folder, file) => {
    const { dependencies } = JSON.parse(readFileSync(file, 'utf8')) as { readonly dependencies: object };
    const isListed = (to: string) =>
      [...Object.keys(dependencies), ...OPTIONAL].some((name) => `${to}/`.startsWith(`${name}/`));
    const foreign = imports.filter(({ from, to, isType }) => {
      const isPackage = files.every((one) => one !== to) && !isBuiltin(to) && !isType;
      return from.startsWith(`${folder}/`) && isPackage && !isListed(to);
    });
    expect(foreign.map(({ from, to }) => `${from} imports ${to}`)).toEqual([]);
  });

  test('gives no two files, and no two types that are exported, one name', () => {
    const places = new Map<string, string[]>();
    const add = (name: string, file: string) => places.set(name, [...(places.get(name) ?? []), file]);
    for (const file of files.filter((one) => one.startsWith('src/'))) {
      add(basename(file), file);
      for (const [, name = ''] of readFileSync(file, 'utf8').matchAll(
        /^export (?:interface|type|class) (\w+)/gm,
      ))
        add(name, file);
    }
    expect([...places].filter(([, inFiles]) => inFiles.length > 1)).toEqual([]);
  });

  test('packs no members of an object into a line of their own', () => {
    expect(files.filter((file) => readFileSync(file, 'utf8').includes('...{'))).toEqual([]);
  });

  test('lets no stage import another', () => {
    const isStage = (file: string) => STAGES.includes(file);
    const wrong = imports.filter(({ from, to }) => isStage(from) && isStage(to));
    expect(wrong.map(({ from, to }) => `${from} imports ${to}`)).toEqual([]);
  });

  test('runs a plain GET in few files', async () => {
    const script = ['--import', 'tsx', 'scripts/files-of-a-get.ts', sharedRedisUrl()];
    // On a busy machine, timers of the tests' pace would run in every request.
    const env = { ...process.env, WEIR_TEST_PACE: '1' };
    const { stderr } = await promisify(execFile)(process.execPath, script, { timeout: 100_000, env });
    for (const [store, most] of Object.entries(MOST_FILES)) {
      const files = Number(new RegExp(`^${store}: (\\d+) files`, 'm').exec(stderr)?.[1]);
      expect(files, stderr).toBeLessThanOrEqual(most);
    }
  });

  test.each([
    ['src/main.ts', 'src/stages/'],
    ['src/main.ts', 'src/http/'],
    ['src/main.ts', 'src/config/settings/'],
    ['src/commands/check/check.ts', 'ioredis'],
    ['src/commands/check/check.ts', 'ajv'],
    ['src/commands/check/check.ts', 're2js'],
    ['src/commands/start.ts', 'ajv'],
    ['src/commands/start.ts', 're2js'],
    ['src/commands/start.ts', 'src/replay/'],
    ['src/commands/start.ts', '@opentelemetry/'],
    ['src/commands/start.ts', 'standardwebhooks'],
    ['src/commands/demo/demo.ts', 'pino-pretty'],
  ])('%s loads nothing of %s', (entry, foreign) => {
    const loaded = new Set([entry]);
    for (const file of loaded) {
      for (const { from, to, isEager } of imports) if (from === file && isEager) loaded.add(to);
    }
    expect([...loaded].filter((file) => file.startsWith(foreign))).toEqual([]);
  });
});
