import { PassThrough, type Readable } from 'node:stream';
import { expect, it } from 'vitest';
import { Refusal } from '../../../../src/domain/problems.ts';
import { AwaitedBodies } from '../../../../src/gateway/upstream/awaited-bodies.ts';
import { bodyTooLong } from '../../../../src/http/message/whole-body.ts';

type Request = Parameters<AwaitedBodies['read']>[0];

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
    pieces: undefined as readonly Buffer[] | undefined,
    onClosed: undefined as (() => void) | undefined,
  };
  return { request: { source } as unknown as Request, source, body };
}

/** Whether a reading is over, once everything that has arrived was read. */
async function isOver(reading: Promise<unknown> | undefined): Promise<boolean> {
  let isSettled = false;
  void reading?.then(() => {
    isSettled = true;
  });
  for (let turn = 0; turn < 3; turn++) await new Promise(setImmediate);
  return isSettled;
}

async function piecesOf(body: Readable): Promise<readonly Buffer[]> {
  const pieces: Buffer[] = [];
  for await (const piece of body) pieces.push(piece as Buffer);
  return pieces;
}

it('bodies take at most an eighth of the memory, and bodies of one payer at most an eighth of that', () => {
  const bodies = new AwaitedBodies(65_536, 640_000);
  const read = (payer: string) => bodies.read(upload(1_000).request, payer) !== undefined;
  const one = Array.from({ length: 20 }, () => read('one'));
  expect(one.filter(Boolean)).toHaveLength(10);
  const others = Array.from({ length: 200 }, (_, index) => read(`other-${index}`));
  expect(others.filter(Boolean)).toHaveLength(70);
  expect(bodies.bytes).toBe(80_000);
});

it('above the bounds, a longer body is streamed at once', () => {
  const bodies = new AwaitedBodies(65_536, 64 * 65_536);
  expect(bodies.read(upload(70_000).request, 'one')).toBeDefined();
  expect(bodies.read(upload(70_000).request, 'one')).toBeUndefined();
  expect(bodies.bytes).toBe(65_536);
});

it('a body that is over gives its room back, and is in few pieces', async () => {
  const bodies = new AwaitedBodies(65_536, 64_000);
  const { request, source, body } = upload(1_000);
  const reading = bodies.read(request, 'one');
  for (let count = 0; count < 1_000; count++) body.write('x');
  body.end();
  expect(await reading).toBeUndefined();
  const { pieces = [] } = source;
  expect(Buffer.concat(pieces)).toEqual(Buffer.alloc(1_000, 'x'));
  expect(pieces.length).toBeLessThan(10);
  expect(bodies.read(upload(1_000).request, 'one')).toBeUndefined();
  source.onClosed?.();
  expect(bodies.bytes).toBe(0);
});

it('of a longer body, the first 64 KiB are awaited, and its stream has every byte', async () => {
  const bodies = new AwaitedBodies(65_536, 2 ** 30);
  const { request, source, body } = upload(70_000);
  const reading = bodies.read(request, 'one');
  expect(bodies.bytes).toBe(65_536);
  const bytes = Buffer.from(Array.from({ length: 70_000 }, (_byte, index) => index % 251));
  let sent = 0;
  for (const length of [1, 1_500, 1, 1, 30_000, 2, 34_030]) {
    body.write(bytes.subarray(sent, sent + length));
    sent += length;
    expect(await isOver(reading)).toBe(false);
  }
  body.write(bytes.subarray(sent, sent + 1));
  expect(await reading).toBeUndefined();
  expect([source.body, source.pieces, bodies.bytes]).toEqual([undefined, undefined, 0]);
  body.end(bytes.subarray(sent + 1));
  expect(Buffer.concat(await piecesOf(body)).equals(bytes)).toBe(true);
});

it('a beginning that arrives octet by octet is kept in few pieces', async () => {
  const bodies = new AwaitedBodies(65_536, 2 ** 30);
  const { request, body } = upload(70_000);
  const reading = bodies.read(request, 'one');
  for (let count = 0; count < 65_536; count++) {
    body.write('x');
    await new Promise<void>((resolve) => process.nextTick(resolve));
  }
  expect(await reading).toBeUndefined();
  body.end();
  expect((await piecesOf(body)).length).toBeLessThan(10);
});

it('large pieces are not copied', async () => {
  const bodies = new AwaitedBodies(65_536, 2 ** 30);
  const { request, source, body } = upload(65_536);
  const reading = bodies.read(request, 'one');
  const sent = [Buffer.alloc(65_000, 'a'), Buffer.alloc(536, 'b')];
  for (const piece of sent) body.write(piece);
  body.end();
  expect(await reading).toBeUndefined();
  expect(source.pieces?.map((piece, index) => piece.buffer === sent[index]?.buffer)).toEqual([true, true]);
});

it('a beginning that breaks gives its room back, and says why', async () => {
  const bodies = new AwaitedBodies(65_536, 2 ** 30);
  const [tooLong, gone, dropped] = [upload(70_000), upload(70_000), upload(70_000)];
  const readings = [tooLong, gone, dropped].map(({ request }) => bodies.read(request, 'one'));
  tooLong.body.write('half');
  tooLong.body.destroy(bodyTooLong(3));
  gone.body.destroy(new Error('the client went away'));
  dropped.body.destroy();
  const refusals = await Promise.all(readings);
  expect(refusals.map((refusal) => refusal instanceof Refusal && refusal.code)).toEqual([
    'PayloadTooLarge',
    'BadRequest',
    'BadRequest',
  ]);
  expect(bodies.bytes).toBe(0);
});

it.each([
  ['of unknown length', 65_536, upload(undefined)],
  ['that its client has yet to be asked for', 65_536, upload(1, { expect: '100-continue' })],
  [
    'longer than 64 KiB that its client has yet to be asked for',
    65_536,
    upload(70_000, { expect: '100-continue' }),
  ],
  ['whose beginning is not to be read', 0, upload(70_000)],
])('a body %s is streamed', (_, maxLength, { request }) => {
  expect(new AwaitedBodies(maxLength, 2 ** 30).read(request, 'one')).toBeUndefined();
});
