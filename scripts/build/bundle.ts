import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join, posix, relative } from 'node:path';
import { type OutputChunk, type Plugin, RolldownMagicString, rolldown } from 'rolldown';
import { modulesOf, type Program } from './programs.ts';

/** The folder of all chunks, in the output folder. */
const CHUNKS = 'chunks';

/**
 * Bundles a program with the packages that it uses. A module that is imported dynamically is a chunk of its own.
 * @returns the chunks
 */
export async function bundle({ source, output, entries, external }: Program): Promise<OutputChunk[]> {
  const build = await rolldown({
    input: filesOf(source, entries),
    platform: 'node',
    external: [...external],
    plugins: [originalPlaces(source), unmappedPackages()],
    onLog: failOnWarning,
  });
  const { output: files } = await build.write({
    dir: output,
    format: 'esm',
    entryFileNames: `${CHUNKS}/[name].js`,
    chunkFileNames: `${CHUNKS}/[name].js`,
    keepNames: true,
    sourcemap: true,
    sourcemapExcludeSources: true,
  });
  await build.close();
  for (const entry of entries) writeEntry(output, entry);
  return files.filter((file) => file.type === 'chunk');
}

/** An entry only loads its chunk. Source maps apply to the modules that are loaded after they are enabled. */
function writeEntry(output: string, entry: string): void {
  const chunk = `${'../'.repeat(entry.split('/').length - 1) || './'}${CHUNKS}/${posix.basename(entry)}.js`;
  const program = `#!/usr/bin/env node\nprocess.setSourceMapsEnabled(true);\nawait import('${chunk}');\n`;
  const file = join(output, `${entry}.js`);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, entry === 'main' ? program : `export * from '${chunk}';\n`);
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

/** Keeps packages out of the source maps. Their lines are of no use to readers of a stack, and Node reads the maps when it starts. */
function unmappedPackages(): Plugin {
  return {
    name: 'unmapped-packages',
    transform: {
      filter: { id: /\/node_modules\/.*\.[cm]?js$/ },
      handler: (code) => ({ code, map: { version: 3, sources: [], names: [], mappings: '' } }),
    },
  };
}
