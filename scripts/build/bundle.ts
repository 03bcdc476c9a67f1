import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join, posix, relative } from 'node:path';
import { type OutputChunk, type Plugin, RolldownMagicString, rolldown } from 'rolldown';
import { modulesOf, type Program } from './programs.ts';

/** The folder of all chunks, in the output folder. */
const CHUNKS = 'chunks';

const STACK_TRACES = 'scripts/build/stack-traces.ts';

/**
 * Bundles a program with the packages that it uses. A module that is imported dynamically is a chunk of its own.
 * @returns the chunks
 */
export async function bundle({
  source,
  output,
  entries,
  external,
  uncalled,
}: Program): Promise<OutputChunk[]> {
  const build = await rolldown({
    input: [STACK_TRACES, ...filesOf(source, entries)],
    platform: 'node',
    external: [...external],
    plugins: [
      withoutPackages(uncalled),
      originalPlaces(source),
      unmappedPackages(),
      withoutClient(),
      inLatin1(),
    ],
    // A build may take long on a machine that is busy.
    checks: { bundlerTimings: false },
    onLog: failOnWarning,
  });
  const { output: files } = await build.write({
    dir: output,
    format: 'esm',
    entryFileNames: `${CHUNKS}/[name].js`,
    chunkFileNames: `${CHUNKS}/[name].js`,
    // Their licences are published apart.
    comments: false,
    keepNames: true,
    sourcemap: true,
    sourcemapExcludeSources: true,
  });
  await build.close();
  for (const entry of entries) writeEntry(output, entry);
  return files.filter((file) => file.type === 'chunk');
}

/** An entry only loads its chunk. The entry of a program sets up stack traces first. */
function writeEntry(output: string, entry: string): void {
  const chunks = `${'../'.repeat(entry.split('/').length - 1) || './'}${CHUNKS}`;
  const program = `#!/usr/bin/env node\nimport '${chunks}/stack-traces.js';\nimport '${chunks}/main.js';\n`;
  const module = `export * from '${chunks}/${posix.basename(entry)}.js';\n`;
  const file = join(output, `${entry}.js`);
  mkdirSync(dirname(file), { recursive: true });
  const isProgram = entry === 'main';
  // npm makes a program executable when it links it, and not again when it has been built anew.
  writeFileSync(file, isProgram ? program : module, { mode: isProgram ? 0o755 : 0o644 });
}

/** Leaves packages out. Where an export is called while the program loads, it returns a function that throws. */
function withoutPackages(names: readonly string[]): Plugin {
  const id = '\0left-out';
  return {
    name: 'without-packages',
    resolveId: (source) => (names.includes(source) ? id : undefined),
    load: (asked) =>
      asked === id
        ? "module.exports = () => () => { throw new Error('This package is not part of the program.'); };"
        : undefined,
  };
}

/**
 * Takes what programs use of node:http without an import. An import reads every export of a module, and some of this one's load Node's
 * client for `fetch`, which takes 6 MB and 40 ms.
 */
function withoutClient(): Plugin {
  return rewriting('without-client', (code, fail) => {
    const rewritten = code.replace(
      /^import \{(.*)\} from "node:http";$/m,
      (_, names: string) =>
        `const {${names.replaceAll(' as ', ': ')}} = process.getBuiltinModule("node:http");`,
    );
    return rewritten.includes(' from "node:http"') ? fail('imports node:http') : rewritten;
  });
}

/** V8 keeps the text of a module in memory, with two bytes for each character if one of them is not in Latin-1. */
function inLatin1(): Plugin {
  return rewriting('in-latin1', (code, fail) => {
    if (/\\[\u0100-\uffff]/.test(code)) return fail('escapes a character outside of Latin-1');
    return code.replace(
      /[\u0100-\uffff]/g,
      (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
    );
  });
}

/** Rewrites the code of each chunk. `fail` ends the build, and says what the chunk does. */
function rewriting(name: string, rewrite: (code: string, fail: (what: string) => never) => string): Plugin {
  return {
    name,
    generateBundle(_options, files) {
      for (const file of Object.values(files)) {
        if (file.type === 'chunk')
          file.code = rewrite(file.code, (what) => this.error(`${file.fileName} ${what}`));
      }
    },
  };
}

/** Emits each module of a program as a file of its own, for profiles and studies. Packages stay in node_modules. */
export async function emitModules(program: Program, output: string): Promise<void> {
  const build = await rolldown({
    input: filesOf(program.source, modulesOf(program)),
    platform: 'node',
    external: /^(?![./])/,
    onLog: failOnWarning,
  });
  await build.write({
    dir: output,
    format: 'esm',
    preserveModules: true,
    preserveModulesRoot: program.source,
    sourcemap: true,
  });
  await build.close();
}

/** Bundles the script of each page into one file, without a source map: pages load nothing else. */
export async function bundlePages({ source, pages }: Program, output: string): Promise<void> {
  for (const name of pages) {
    const build = await rolldown({
      input: filesOf(source, [name]),
      platform: 'browser',
      onLog: failOnWarning,
    });
    await build.write({ file: join(output, `${name}.js`), format: 'esm' });
    await build.close();
  }
}

function filesOf(source: string, modules: readonly string[]): string[] {
  return modules.map((name) => posix.join(source, `${name}.ts`));
}

function failOnWarning(level: string, log: { readonly message: string }): void {
  if (level === 'warn') throw new Error(log.message);
}

/**
 * Lets modules find files relative to themselves: `import.meta.url` is the place where the module would be without a bundle, and files
 * that are not modules are copied to the same places.
 */
function originalPlaces(source: string): Plugin {
  return {
    name: 'original-places',
    transform: {
      filter: { id: /\/src\/.*\.ts$/, code: /import\.meta\.url/ },
      handler(code, id) {
        const place = relative(source, id).replace(/\.ts$/, '.js');
        const text = new RolldownMagicString(code);
        text.replaceAll('import.meta.url', `new URL('../${place}', import.meta.url).href`);
        return { code: text.toString(), map: text.generateMap({ hires: true }).toString() };
      },
    },
  };
}

/** Keeps packages out of the source maps. Their lines are of no use to readers of a stack, and small maps are read in a few milliseconds. */
function unmappedPackages(): Plugin {
  return {
    name: 'unmapped-packages',
    transform: {
      filter: { id: /\/node_modules\/.*\.[cm]?js$/ },
      handler: (code) => ({ code, map: { version: 3, sources: [], names: [], mappings: '' } }),
    },
  };
}
