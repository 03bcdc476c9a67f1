import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type ApiFolder, apiFolder, openapi } from '../../../fixtures/api-files.ts';

let folder: ApiFolder;
beforeEach(async () => {
  folder = await apiFolder();
});
afterEach(() => folder.remove());

/** A document with an example that refers to a file. Nobody follows it, so the file may be missing or invalid. */
const WITH_EXAMPLE = openapi(
  '/a: { post: { requestBody: { content: { application/json: { examples: { one: { $ref: example.yaml } } } } } } }',
);

describe('documents that are read again', () => {
  test('are not parsed while their texts are the same, because every start looks at them a second time', async () => {
    const paths = Array.from({ length: 500 }, (_, index) => `/p${index}: { get: { tags: [a, b, c] } }`);
    await folder.write('openapi.yaml', openapi(paths.join('\n')));
    const files = folder.files();
    const [first, firstMs] = await measured(() => files.load());
    const [second, secondMs] = await measured(() => files.load());
    expect(second).toBe(first);
    expect(secondMs).toBeLessThan(firstMs / 10);
  });

  test.each([
    ['appears', undefined, 'value: 1'],
    ['becomes valid', 'value: [', 'value: 1'],
    ['changes', 'value: 1', 'value: 2'],
    ['disappears', 'value: 1', undefined],
  ])('are read when a file that they refer to %s', async (_, before, after) => {
    await folder.write('openapi.yaml', WITH_EXAMPLE);
    const put = (text: string | undefined) =>
      text === undefined ? folder.delete('example.yaml') : folder.write('example.yaml', text);
    if (before !== undefined) await put(before);
    const files = folder.files();
    const first = await files.load();
    expect(await files.load()).toBe(first);
    await put(after);
    const second = await files.load();
    expect(second).not.toBe(first);
    expect(await files.load()).toBe(second);
  });
});

/** What work returns, and the milliseconds of the processor that it takes. */
async function measured<T>(work: () => Promise<T>): Promise<readonly [T, number]> {
  const before = process.cpuUsage();
  const value = await work();
  const { user, system } = process.cpuUsage(before);
  return [value, (user + system) / 1_000];
}
