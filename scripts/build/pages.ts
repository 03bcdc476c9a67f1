import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { transformSync } from 'rolldown/utils';
import type { Program } from './programs.ts';

/** Compiles the modules that browsers load, and the modules that these import, each to a file of its own. */
export function compilePages({ source, pages }: Program, output: string): void {
  const waiting = [...pages];
  for (const name of waiting) {
    const file = join(source, `${name}.ts`);
    const { code, errors } = transformSync(file, readFileSync(file, 'utf8'), {
      typescript: { rewriteImportExtensions: 'rewrite', onlyRemoveTypeImports: true },
    });
    if (errors.length > 0) throw new Error(`${file}: ${errors.map(({ message }) => message).join('; ')}`);
    const target = join(output, `${name}.js`);
    mkdirSync(dirname(target), { recursive: true });
    writeFileSync(target, code);
    for (const [, path = ''] of code.matchAll(/^import [^;]*? from ["'](\.[^"']+)\.js["'];$/gm)) {
      const imported = join(dirname(name), path);
      if (!waiting.includes(imported)) waiting.push(imported);
    }
  }
}
