import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { bundle } from '../../../scripts/build/bundle.ts';

/** Packages whose names take long to compare, as everything does on a machine that is busy. */
class SlowNames extends Array<string> {
  override includes(name: string): boolean {
    const endMs = performance.now() + 500;
    while (performance.now() < endMs);
    return super.includes(name);
  }
}

test('a build that takes long succeeds', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'weir-build-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  writeFileSync(join(directory, 'main.ts'), "import './other.ts';\n");
  writeFileSync(join(directory, 'other.ts'), "console.log('built');\n");
  const chunks = await bundle({
    name: 'slow',
    source: relative('.', directory),
    output: join(directory, 'output'),
    entries: ['main'],
    external: [],
    uncalled: new SlowNames(),
    pages: [],
    copies: [],
  });
  expect(chunks.map(({ name }) => name)).toContain('main');
});
