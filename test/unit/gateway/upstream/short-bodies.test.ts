import { PassThrough } from 'node:stream';
import { expect, it } from 'vitest';
import { ShortBodies } from '../../../../src/gateway/upstream/short-bodies.ts';

type Request = Parameters<ShortBodies['read']>[0];

/** A request with a body of this length that has not arrived. */
function upload(length: number | undefined, fields: Readonly<Record<string, string>> = {}) {
  const body = new PassThrough();
  const stated: Readonly<Record<string, string>> =
    length === undefined ? {} : { 'content-length': `${length}` };
  const all = { ...stated, ...fields };
  const source = {
    field: (name: string) => all[name],
    readBody: () => body,
    body: undefined as Buffer | undefined,
    onClosed: undefined as (() => void) | undefined,
  };
  return { request: { source } as unknown as Request, source, body };
}

it('bodies take at most an eighth of the memory, and bodies of one payer at most an eighth of that', () => {
  const bodies = new ShortBodies(65_536, 640_000);
  const read = (payer: string) => bodies.read(upload(1_000).request, payer) !== undefined;
  const one = Array.from({ length: 20 }, () => read('one'));
  expect(one.filter(Boolean)).toHaveLength(10);
  const others = Array.from({ length: 200 }, (_, index) => read(`other-${index}`));
  expect(others.filter(Boolean)).toHaveLength(70);
  expect(bodies.bytes).toBe(80_000);
});

it('a body that is over gives its room back, and is in one piece', async () => {
  const bodies = new ShortBodies(65_536, 64_000);
  const { request, source, body } = upload(1_000);
  const reading = bodies.read(request, 'one');
  for (let count = 0; count < 1_000; count++) body.write('x');
  body.end();
  expect(await reading).toBeUndefined();
  expect(source.body).toEqual(Buffer.alloc(1_000, 'x'));
  expect(bodies.read(upload(1_000).request, 'one')).toBeUndefined();
  source.onClosed?.();
  expect(bodies.bytes).toBe(0);
});

it.each([
  ['longer than 64 KiB', upload(65_537)],
  ['of unknown length', upload(undefined)],
  ['that its client has yet to be asked for', upload(1, { expect: '100-continue' })],
])('a body %s is streamed', (_, { request }) => {
  expect(new ShortBodies(65_536, 2 ** 30).read(request, 'one')).toBeUndefined();
});
