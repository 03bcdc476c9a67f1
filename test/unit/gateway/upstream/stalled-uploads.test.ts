import { describe, expect, it, onTestFinished } from 'vitest';
import {
  StalledUploads,
  type StreamedRequest,
  type WatchedUpload,
} from '../../../../src/gateway/upstream/stalled-uploads.ts';
import type { Guest } from '../../../../src/gateway/upstream/turns/guest.ts';
import { Turns, type Visit } from '../../../../src/gateway/upstream/turns/turns.ts';

const CHECKS = 4;

function start() {
  const turns = new Turns({
    connections: 20,
    maxWaiting: 1_000,
    publicPercent: 50,
    unauthenticatedPercent: 5,
    tunnelPercent: 50,
    reservePercent: 10,
    queueTimeoutMs: 60_000,
    concurrency: 'fixed',
  });
  const uploads = new StalledUploads(turns);
  onTestFinished(() => turns.close());
  const enter = (count: number, payerId: string) =>
    Array.from({ length: count }, () => {
      const upload = new Request(turns, payerId);
      uploads.add(upload);
      onTestFinished(() => uploads.remove(upload));
      return upload;
    });
  const check = (progress: (request: Request) => number, all: readonly Request[]) => {
    for (let count = 0; count < CHECKS; count++) {
      for (const upload of all)
        if (upload.awaitedBytes !== undefined) upload.awaitedBytes += progress(upload);
      uploads.check();
    }
  };
  return { turns, uploads, enter, check };
}

class Request implements StreamedRequest, Guest {
  readonly traffic = 'caller';
  readonly isTunnel = false;
  readonly payerId: string;
  readonly #turns: Turns;
  visit: Visit | undefined;
  upload: WatchedUpload | undefined;
  awaitedBytes: number | undefined = 0;
  hasGivenWay = false;

  constructor(turns: Turns, payerId: string) {
    this.#turns = turns;
    this.payerId = payerId;
    this.visit = turns.enter(this);
  }

  giveWay(): void {
    this.hasGivenWay = true;
    if (this.visit !== undefined) this.#turns.leave(this.visit);
  }

  onTurn(): void {}
  onTurnedAway(): void {}
}

const gone = (uploads: readonly Request[]) => uploads.filter(({ hasGivenWay }) => hasGivenWay).length;

describe('an upload that stalls', () => {
  it('stays while nobody waits', () => {
    const { enter, check } = start();
    const stalled = enter(18, 'slow');
    check(() => 0, stalled);
    expect(gone(stalled)).toBe(0);
  });

  it('gives way, and no more of them than are waited for', () => {
    const { enter, check, turns } = start();
    const stalled = [...enter(17, 'slow'), ...enter(3, 'other')];
    const waiting = enter(4, 'new');
    check(() => 0, stalled);
    expect(turns.waiting).toBe(0);
    expect(gone(stalled)).toBe(waiting.length);
    expect(gone(stalled.slice(0, 17))).toBe(4);
  });

  it.each([
    ['that arrives with 1 KiB a second', 1_024, 0],
    ['that arrives more slowly', 1_000, 1],
  ])('an upload %s', (_, bytes, count) => {
    const { enter, check } = start();
    const uploads = [...enter(18, 'slow'), ...enter(2, 'other')];
    enter(1, 'new');
    check(() => bytes, uploads);
    expect(gone(uploads)).toBe(count);
  });

  it('gives way, whichever uploads ended before it', () => {
    const { uploads, enter, check } = start();
    const all = [...enter(18, 'slow'), ...enter(2, 'other')];
    const ended = all.filter((_, index) => index % 3 === 0);
    // The second time changes nothing.
    for (const upload of [...ended, ...ended]) uploads.remove(upload);
    enter(5, 'new');
    check(() => 0, all);
    expect(gone(ended)).toBe(0);
    expect(gone(all)).toBe(5);
  });

  it('stays if its upstream is what it waits for', () => {
    const { enter, check } = start();
    const uploads = [...enter(18, 'slow'), ...enter(2, 'other')];
    enter(1, 'new');
    for (const upload of uploads) upload.awaitedBytes = undefined;
    check(() => 0, uploads);
    expect(gone(uploads)).toBe(0);
  });
});
