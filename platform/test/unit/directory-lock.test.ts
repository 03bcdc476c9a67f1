import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { generatedCases } from '../../../test/fixtures/generated-cases.ts';
import { type DirectoryLock, lockDirectory } from '../../src/database/directory-lock.ts';

const parent = mkdtempSync(join(tmpdir(), 'weir-lock-'));
afterAll(() => rmSync(parent, { recursive: true }));
let count = 0;
const newPath = () => join(parent, String(count++));

test('a directory is created and locked, and can be locked again after the release', async () => {
  const path = join(newPath(), 'below');
  for (let i = 0; i < 2; i++) {
    const lock = await lockDirectory(path);
    expect(readdirSync(path).length).toBe(1);
    await expect(lockDirectory(path)).rejects.toThrow(
      new RegExp(
        `^The directory ${path} is in use by process ${process.pid} on .+: stop that process, or choose another directory\\.$`,
      ),
    );
    await lock.release();
    expect(readdirSync(path)).toEqual([]);
  }
});

test('of any number that start at once, exactly one gets the lock', async () => {
  for (let round = 0; round < generatedCases(30); round++) {
    const path = newPath();
    const results = await Promise.allSettled(Array.from({ length: 8 }, () => lockDirectory(path)));
    const locks: DirectoryLock[] = results.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
    expect(locks.length).toBe(1);
    await Promise.all(locks.map((lock) => lock.release()));
    expect(readdirSync(path)).toEqual([]);
  }
});

test('the path may be longer than the address of a socket', async () => {
  const path = join(newPath(), ...Array.from({ length: 4 }, () => 'a'.repeat(60)));
  const lock = await lockDirectory(path);
  await expect(lockDirectory(path)).rejects.toThrow('is in use by process');
  await lock.release();
  expect(readdirSync(path)).toEqual([]);
});

test('a path that is not a directory is refused in one sentence', async () => {
  const file = newPath();
  writeFileSync(file, '');
  await expect(lockDirectory(file)).rejects.toThrow(`The directory ${file} cannot be used: it is a file.`);
  const below = join(file, 'data');
  await expect(lockDirectory(below)).rejects.toThrow(
    `The directory ${below} cannot be used: part of its path is a file.`,
  );
});

// Root may write everywhere.
test.skipIf(process.getuid?.() === 0)('a directory of another user is refused in one sentence', async () => {
  const path = newPath();
  mkdirSync(path, { mode: 0o500 });
  await expect(lockDirectory(path)).rejects.toThrow(
    `The directory ${path} cannot be used: this user may not write in it.`,
  );
});
