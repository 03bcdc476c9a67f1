import { describe, expect, it } from 'vitest';
import type { Traffic } from '../../../../../src/domain/operation.ts';
import type { Guest, TurnedAway, TurnSettings } from '../../../../../src/gateway/upstream/turns/guest.ts';
import { Turns, type Visit } from '../../../../../src/gateway/upstream/turns/turns.ts';
import { random } from '../../../../fixtures/random.ts';

const SETTINGS: TurnSettings = {
  connections: 20,
  maxWaiting: 1_000,
  publicPercent: 50,
  unauthenticatedPercent: 5,
  tunnelPercent: 50,
  reservePercent: 10,
  queueTimeoutMs: 5_000,
  concurrency: 'fixed',
};

const turnsWith = (settings: Partial<TurnSettings> = {}) => new Turns({ ...SETTINGS, ...settings });

class Request implements Guest {
  readonly traffic: Traffic;
  readonly payerId: string;
  readonly isTunnel: boolean;
  readonly payer: string;
  visit: Visit | undefined;
  turnedAway: TurnedAway | undefined;
  onTurnCalled: (() => void) | undefined;

  constructor(payerId: string, traffic: Traffic = 'caller', isTunnel = false) {
    this.payerId = payerId;
    this.traffic = traffic;
    this.isTunnel = isTunnel;
    this.payer = `${traffic} ${payerId}`;
  }

  enter(turns: Turns, nowMs = 0): this {
    this.visit = turns.enter(this, nowMs);
    return this;
  }

  leave(turns: Turns): void {
    if (this.visit !== undefined) turns.leave(this.visit);
  }

  get isPresent(): boolean {
    return this.visit?.state === 'present';
  }

  onTurn(): void {
    this.onTurnCalled?.();
  }

  onTurnedAway(reason: TurnedAway): void {
    this.turnedAway = reason;
  }
}

const enter = (turns: Turns, count: number, payerId: string, traffic: Traffic = 'caller') =>
  Array.from({ length: count }, () => new Request(payerId, traffic).enter(turns));

const present = (requests: readonly Request[]) => requests.filter(({ isPresent }) => isPresent).length;

describe('turns', () => {
  it('one payer alone uses nine tenths, and a newcomer never waits', () => {
    const turns = turnsWith();
    expect(present(enter(turns, 600, 'greedy'))).toBe(18);
    expect(present(enter(turns, 1, 'new'))).toBe(1);
    expect(present(enter(turns, 1, 'newer'))).toBe(1);
  });

  it('200, 20 and 2 requests outstanding get 9, 9 and 2 of 20 places', () => {
    const turns = turnsWith();
    const greedy = enter(turns, 200, 'greedy');
    const all = [greedy, enter(turns, 20, 'middle'), enter(turns, 2, 'small')];
    for (let round = 0; round < 200; round++) {
      const request = greedy.find(({ isPresent }) => isPresent);
      if (request === undefined || present(all[1] ?? []) === 9) break;
      request.leave(turns);
      greedy.splice(greedy.indexOf(request), 1, new Request('greedy').enter(turns));
    }
    expect(all.map(present)).toEqual([9, 9, 2]);
  });

  it('the requests of a payer get their turns in order of arrival', () => {
    const turns = turnsWith({ connections: 1 });
    const requests = enter(turns, 5, 'one');
    for (const request of requests) {
      expect(request.isPresent).toBe(true);
      request.leave(turns);
    }
  });

  it('a request that leaves while it waits gets no turn', () => {
    const turns = turnsWith({ connections: 1 });
    const [first, second, third] = enter(turns, 3, 'one');
    second?.leave(turns);
    first?.leave(turns);
    expect(second?.visit?.state).toBe('over');
    expect(third?.isPresent).toBe(true);
  });

  it('a request is turned away when it has waited for queueTimeoutMs', () => {
    const turns = turnsWith({ connections: 1 });
    new Request('one').enter(turns, 0);
    const early = new Request('one').enter(turns, 1_000);
    const late = new Request('two').enter(turns, 1_001);
    turns.expire(5_999);
    expect(early.turnedAway).toBeUndefined();
    turns.expire(6_000);
    expect([early.turnedAway, late.turnedAway]).toEqual(['late', undefined]);
  });

  it('when too many wait, the payer with the most makes room', () => {
    const turns = turnsWith({ connections: 1, maxWaiting: 4 });
    const greedy = enter(turns, 5, 'greedy');
    const other = enter(turns, 1, 'other');
    expect(greedy.map(({ turnedAway }) => turnedAway).lastIndexOf('crowded')).toBe(4);
    expect(other[0]?.visit?.state).toBe('waiting');
    expect(turns.hasRoomFor('caller', 'greedy')).toBe(false);
    expect(turns.hasRoomFor('caller', 'third')).toBe(true);
    expect(enter(turns, 1, 'greedy')[0]?.visit).toBeUndefined();
  });

  it('a full queue keeps no newcomer from a free place', () => {
    const turns = turnsWith({ maxWaiting: 1 });
    enter(turns, 19, 'greedy');
    expect(turns.waiting).toBe(1);
    expect([turns.hasRoomFor('caller', 'greedy'), turns.hasRoomFor('caller', 'new')]).toEqual([false, true]);
    expect(present(enter(turns, 3, 'new'))).toBe(2);
  });

  it('public and free requests keep to their shares of the places', () => {
    const turns = turnsWith();
    const open = [...enter(turns, 30, '10.0.0.1', 'public'), ...enter(turns, 30, '10.0.0.2', 'public')];
    const free = enter(turns, 30, '10.0.0.3', 'uncharged');
    expect([present(open), present(free)]).toEqual([10, 1]);
    expect(turns.hasRoomFor('uncharged', '10.0.0.9')).toBe(false);
  });

  it('tunnels keep to their share, and give it back', () => {
    const turns = turnsWith({ connections: 4 });
    const tunnels = ['a', 'b'].map((id) => new Request(id, 'caller', true).enter(turns));
    expect(turns.hasRoomForTunnel()).toBe(false);
    tunnels[0]?.leave(turns);
    expect(turns.hasRoomForTunnel()).toBe(true);
  });

  it('tunnels take no place from requests when the limit is lowered', () => {
    const turns = turnsWith({ connections: 40 });
    const tunnels = Array.from({ length: 10 }, () => new Request('chat', 'caller', true).enter(turns));
    turns.limitTo(10);
    expect(present(tunnels)).toBe(10);
    expect(present(enter(turns, 30, 'other'))).toBe(8);
  });

  const answer = (turns: Turns, requests: readonly Request[]) => {
    for (const { visit } of requests) if (visit !== undefined) turns.noteAnswered(visit);
  };

  it('responses that have begun take no place from requests when the limit is lowered', () => {
    const turns = turnsWith({ connections: 200 });
    const streams = enter(turns, 100, 'busy');
    turns.limitTo(10);
    const others = enter(turns, 20, 'busy');
    expect(present(others)).toBe(0);
    answer(turns, streams);
    expect([present(others), turns.unanswered, turns.present]).toEqual([9, 9, 109]);
    expect(present(enter(turns, 2, 'quiet'))).toBe(1);
    for (const request of [...streams, ...others]) request.leave(turns);
    expect([turns.unanswered, turns.present]).toEqual([2, 2]);
  });

  it('however low the limit is, the responses of one payer leave the reserve of all connections to others', () => {
    const turns = turnsWith({ connections: 40 });
    turns.limitTo(10);
    const streams = enter(turns, 60, 'busy');
    for (let round = 0; round < 10; round++) answer(turns, streams);
    expect(present(streams)).toBe(36);
    const quiet = enter(turns, 4, 'quiet');
    expect(present(quiet)).toBe(4);
    answer(turns, quiet);
    expect(present(enter(turns, 1, 'third'))).toBe(0);
    expect(turns.present).toBe(40);
  });

  it('public responses that have begun take no place from public requests when the limit is lowered', () => {
    const turns = turnsWith({ connections: 40 });
    const streams = enter(turns, 20, '10.0.0.1', 'public');
    turns.limitTo(10);
    answer(turns, streams.slice(0, 15));
    const others = Array.from({ length: 9 }, (_, index) => new Request(`${index}`, 'public').enter(turns));
    expect(present(others)).toBe(0);
    streams[0]?.leave(turns);
    expect(present(others)).toBe(0);
    answer(turns, streams);
    expect(present(others)).toBe(1);
  });

  it('a lower limit lowers the share of public operations with it', () => {
    const turns = turnsWith({ connections: 40 });
    turns.limitTo(10);
    const strangers = Array.from({ length: 30 }, (_, index) =>
      new Request(`${index}`, 'public').enter(turns),
    );
    expect(present(strangers)).toBe(5);
  });

  it('after the limit has fallen, requests that are still at the upstream do not use up the reserve', () => {
    const turns = turnsWith({ connections: 40 });
    const busy = enter(turns, 40, 'busy');
    turns.limitTo(10);
    expect(present(busy)).toBe(36);
    expect(present(enter(turns, 2, 'quiet'))).toBe(1);
    busy[0]?.leave(turns);
    expect(present(busy)).toBe(35);
  });

  it('under a low limit, each waiting Account still has one place', () => {
    const turns = turnsWith();
    turns.limitTo(2);
    const requests = ['a', 'b', 'c', 'd', 'e'].map((id) => enter(turns, 3, id));
    expect(requests.map(present).every((count) => count >= 1)).toBe(true);
    turns.limitTo(1_000);
    expect(turns.limit).toBe(20);
  });

  it('says who waits, the longest wait first, and who has the most places', () => {
    const turns = turnsWith({ connections: 3 });
    for (const [index, payer] of ['a', 'a', 'a', 'b', 'c', 'c', 'b'].entries())
      new Request(payer).enter(turns, index);
    const waiting = turns
      .waitingPayers(2, 10)
      .map(({ id, waiting, present, longestMs }) => [id, waiting, present, longestMs]);
    expect(waiting).toEqual([
      ['a', 1, 2, 8],
      ['c', 2, 0, 6],
    ]);
    const present = turns.presentPayers(5).map(({ id, present }) => [id, present]);
    expect(present).toEqual([
      ['a', 2],
      ['b', 1],
    ]);
  });

  it('100,000 payers that wait cost a turn no more than 100 do', () => {
    const perTurn = [100, 100_000].map((payers) => {
      const turns = turnsWith({ connections: 10, maxWaiting: 200_000 });
      const requests = Array.from({ length: payers }, (_, index) => new Request(`${index}`));
      const holders = enter(turns, 30, 'holder');
      for (const request of requests) request.enter(turns);
      let next = holders[0];
      let count = 0;
      const startedMs = performance.now();
      while (count < 20_000) {
        next = requests[count % payers];
        next?.leave(turns);
        next?.enter(turns);
        count++;
      }
      return (performance.now() - startedMs) / count;
    });
    expect((perTurn[1] ?? 0) / (perTurn[0] ?? 1)).toBeLessThan(20);
  });
});

/** What the queue has to hold to, computed from all requests after every event. */
class Model {
  readonly #settings: TurnSettings;
  readonly #limit: number;
  readonly waiting: Request[] = [];
  present = 0;
  #open = 0;
  #answered = 0;
  #answeredOpen = 0;
  readonly #presentOf = new Map<string, number>();
  readonly #presentIn: Record<Traffic, number> = { caller: 0, public: 0, uncharged: 0 };
  readonly #tunnelsIn: Record<Traffic, number> = { caller: 0, public: 0, uncharged: 0 };
  readonly #answeredIn: Record<Traffic, number> = { caller: 0, public: 0, uncharged: 0 };
  readonly #hasPlace: boolean;
  readonly #hasOpenPlace: boolean;
  readonly #fairShare: number;

  constructor(settings: TurnSettings, limit: number, requests: Iterable<Request>) {
    this.#settings = settings;
    this.#limit = limit;
    for (const request of requests) this.#add(request);
    const payers = [...this.#presentOf.keys()];
    const accounts = payers.filter((payer) => payer.startsWith('caller')).length;
    const tunnels = Object.values(this.#tunnelsIn).reduce((sum, count) => sum + count, 0);
    const { connections, reservePercent } = settings;
    const answered = this.#answered;
    const openOf = (places: number) =>
      places === 1 ? 1 : places - Math.max(1, Math.floor((places * reservePercent) / 100));
    const places = Math.min(connections - answered, Math.max(limit, accounts) + tunnels);
    this.#hasPlace = this.present - answered < places;
    this.#hasOpenPlace = this.#open - this.#answeredOpen < openOf(places) && this.#open < openOf(connections);
    this.#fairShare = Math.max(1, Math.floor((places + answered) / (payers.length + 1)));
  }

  #add(request: Request): void {
    if (request.visit?.state === 'over') return;
    const payer = request.payer;
    const known = this.#presentOf.get(payer) ?? 0;
    this.#presentOf.set(payer, known + Number(request.isPresent));
    if (!request.isPresent) {
      this.waiting.push(request);
      return;
    }
    this.present++;
    this.#presentIn[request.traffic]++;
    if (request.isTunnel) this.#tunnelsIn[request.traffic]++;
    if (request.visit?.isReserved === false) this.#open++;
    if (request.visit?.isAnswered !== true) return;
    this.#answered++;
    this.#answeredIn[request.traffic]++;
    if (!request.visit.isReserved) this.#answeredOpen++;
  }

  presentOf(request: Request): number {
    return this.#presentOf.get(request.payer) ?? 0;
  }

  hasShare({ traffic }: Request): boolean {
    const { connections, publicPercent, unauthenticatedPercent } = this.#settings;
    const percent = { caller: 100, public: publicPercent, uncharged: unauthenticatedPercent }[traffic];
    const shareOf = (places: number) => Math.max(1, Math.floor((places * percent) / 100));
    const present = this.#presentIn[traffic];
    if (traffic === 'caller') return present < connections;
    const apart = this.#tunnelsIn[traffic] + this.#answeredIn[traffic];
    return present < shareOf(connections) && present - apart < shareOf(this.#limit);
  }

  isAdmissible(request: Request): boolean {
    return this.#hasPlace && (this.#hasOpenPlace || this.presentOf(request) < this.#fairShare);
  }

  /** Fails if somebody else should have had this turn. */
  checkTurn(request: Request): void {
    const own = this.presentOf(request) - 1;
    const sinceMs = request.visit?.sinceMs ?? 0;
    for (const other of this.waiting) {
      if (other.payer === request.payer) {
        if ((other.visit?.sinceMs ?? 0) < sinceMs) throw new Error(`${other.payer} has waited for longer`);
      } else if (this.hasShare(other) && this.presentOf(other) < own)
        throw new Error(`${other.payer} has fewer requests there than ${request.payer}`);
    }
  }
}

/** Random events at one queue. */
class History {
  readonly #pick: (below: number) => number;
  readonly #settings: TurnSettings;
  readonly turns: Turns;
  readonly requests: Request[] = [];
  readonly #isAnswering: boolean;
  #limit: number;
  #nowMs = 0;

  /** @param isAnswering whether responses begin before they end */
  constructor(seed: number, connections: number, isAnswering: boolean) {
    this.#pick = random(seed);
    this.#isAnswering = isAnswering;
    this.#settings = {
      ...SETTINGS,
      connections,
      maxWaiting: 12,
      unauthenticatedPercent: 20,
      queueTimeoutMs: 50,
    };
    this.turns = new Turns(this.#settings);
    this.#limit = connections;
  }

  get model(): Model {
    return new Model(this.#settings, this.#limit, this.requests);
  }

  step(): void {
    this.#nowMs += this.#pick(3);
    if (this.#isAnswering && this.#pick(2) === 0) {
      const visit = this.requests[this.#pick(this.requests.length)]?.visit;
      if (visit !== undefined) this.turns.noteAnswered(visit);
      return;
    }
    const kind = this.#pick(20);
    if (kind < 11) this.#enter();
    else if (kind < 19) this.requests[this.#pick(this.requests.length)]?.leave(this.turns);
    else if (this.#pick(4) === 0) {
      this.#limit = 1 + this.#pick(this.#settings.connections);
      this.turns.limitTo(this.#limit);
    } else this.turns.expire(this.#nowMs);
    for (let index = this.requests.length - 1; index >= 0; index--)
      if (this.requests[index]?.visit?.state === 'over') this.requests.splice(index, 1);
  }

  #enter(): void {
    const { turns } = this;
    const traffics = ['caller', 'caller', 'caller', 'public', 'uncharged'] as const;
    const traffic = traffics[this.#pick(traffics.length)] ?? 'caller';
    const isTunnel = this.#pick(8) === 0 && turns.hasRoomForTunnel(traffic);
    const request = new Request(`payer ${this.#pick(1 + this.#pick(12))}`, traffic, isTunnel);
    const hasRoom = turns.hasRoomFor(traffic, request.payerId);
    request.onTurnCalled = () => this.model.checkTurn(request);
    request.enter(turns, this.#nowMs);
    expect(request.visit !== undefined).toBe(hasRoom);
    if (request.visit !== undefined) this.requests.push(request);
  }
}

/** In CI, a million in all. */
const EVENTS = process.env.WEIR_TEST_CASES === 'all' ? 200_000 : 4_000;

const HISTORIES = [1, 2, 7, 20, 40].flatMap((connections) => [
  { connections, isAnswering: false, responses: 'short' },
  { connections, isAnswering: true, responses: 'long' },
]);

it.each(HISTORIES)(
  'a history of random events at $connections places, with $responses responses, loses no place and passes nobody over',
  ({ connections, isAnswering }) => {
    const history = new History(connections, connections, isAnswering);
    const { turns, requests } = history;
    for (let event = 0; event < EVENTS; event++) {
      history.step();
      const { model } = history;
      const left = model.waiting.filter((request) => model.hasShare(request) && model.isAdmissible(request));
      const seen = [turns.present, turns.waiting, left.length];
      if (seen.join() !== [model.present, model.waiting.length, 0].join())
        throw new Error(`event ${event}: ${seen} instead of ${[model.present, model.waiting.length, 0]}`);
    }
    for (const request of [...requests]) request.leave(turns);
    expect([turns.present, turns.unanswered, turns.waiting]).toEqual([0, 0, 0]);
    expect(turns.hasRoomForTunnel()).toBe(connections > 1);
    turns.limitTo(connections);
    const after = Array.from({ length: connections }, (_, index) =>
      new Request(`after ${index}`).enter(turns),
    );
    expect(present(after)).toBe(connections);
    turns.close();
  },
);
