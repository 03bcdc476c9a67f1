import type { Socket } from 'node:net';
import { expect, it } from 'vitest';
import { awaitBeginning } from '../../../../src/http/message/whole-body.ts';
import { ArrivingBody } from '../../../../src/http/server/edge/arriving-body.ts';

const PIECE = Buffer.alloc(60_000, 'x');

/** A body of 1 MB, and how much of it a client can send before it is paused. */
function startBody() {
  const state = { isPaused: false };
  const socket = {
    pause: () => {
      state.isPaused = true;
    },
    resume: () => {
      state.isPaused = false;
    },
  };
  const body = new ArrivingBody(socket as unknown as Socket, 1_000_000);
  const send = async () => {
    let sent = 0;
    while (!state.isPaused && sent < 600_000) {
      body.receive(PIECE);
      sent += PIECE.length;
      await new Promise(setImmediate);
    }
    return sent;
  };
  return { body, send };
}

it('a body that nobody asks for is paused behind 64 KiB', async () => {
  const { send } = startBody();
  expect(await send()).toBe(2 * PIECE.length);
});

it('a body whose beginning was awaited is paused behind it, and goes on when it is read', async () => {
  const { body, send } = startBody();
  const beginning = awaitBeginning(body, 65_536);
  expect(await send()).toBe(3 * PIECE.length);
  expect(await beginning).toBeUndefined();
  let received = 0;
  body.on('data', (bytes: Buffer) => {
    received += bytes.length;
  });
  await new Promise(setImmediate);
  expect(await send()).toBe(600_000);
  expect(received).toBe(3 * PIECE.length + 600_000);
});
