/**
 * Builds the programs: `tsx scripts/build/main.ts [gateway|platform]...`, by default both. With `modules` it builds the gateway into the
 * folder `modules` instead, a file for each module. Does not check types; `npm run lint` does.
 */
import { cpSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundle, bundlePages, emitModules } from './bundle.ts';
import { noticesOf } from './notices.ts';
import { GATEWAY, PLATFORM, type Program } from './programs.ts';

process.chdir(fileURLToPath(new URL('../../', import.meta.url)));
const names = process.argv.slice(2);
if (names.includes('modules')) await buildModules(GATEWAY, 'modules');
else await Promise.all([GATEWAY, PLATFORM].filter((program) => isChosen(program)).map(build));

function isChosen({ name }: Program): boolean {
  return names.length === 0 || names.includes(name);
}

async function build(program: Program): Promise<void> {
  const { output } = program;
  rmSync(output, { recursive: true, force: true });
  const chunks = await bundle(program);
  const modules = chunks.flatMap(({ moduleIds }) => moduleIds);
  writeFileSync(join(output, 'THIRD-PARTY-NOTICES.txt'), noticesOf(modules));
  await copyFiles(program, output);
}

async function buildModules(program: Program, output: string): Promise<void> {
  rmSync(output, { recursive: true, force: true });
  await emitModules(program, output);
  await copyFiles(program, output);
}

/** What the program reads at run time: pages, and all files that are not TypeScript, at the same places as in its sources. */
async function copyFiles(program: Program, output: string): Promise<void> {
  const { source, copies } = program;
  await bundlePages(program, output);
  for (const file of readdirSync(source, { recursive: true, encoding: 'utf8' })) {
    if (/\.(?!ts$)\w+$/.test(file) && !file.endsWith('tsconfig.json'))
      cpSync(join(source, file), join(output, file));
  }
  const { resolve } = createRequire(join(process.cwd(), source, 'main.ts'));
  for (const [from, to] of copies) cpSync(resolve(from), join(output, to));
}
