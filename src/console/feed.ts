import type { Writable } from 'node:stream';
import { setTimeout } from 'node:timers/promises';
import type { Fleet, FleetReading } from '../admin/fleet/fleet.ts';
import type { OwnerReports } from '../admin/fleet/owner-reports.ts';
import type { Range } from '../admin/fleet/ranges.ts';
import { isOf, newestFirst, type RefusedOwner, type RefusedRequest } from '../admin/fleet/refusals.ts';
import { type FleetSnapshot, fleetChanges, fleetSnapshot, type Losses } from '../admin/fleet/snapshot.ts';
import { pace } from '../domain/pace.ts';
import type { Window } from '../observe/usage/windows.ts';

/** What a console shows. */
interface FleetView {
  /** The times of the rankings and of the charts. */
  readonly window: Window;
  readonly range: Range;
  /** Whose refusals a stream sends as well. */
  readonly owner?: RefusedOwner | undefined;
  /** Whether a stream sends only the changes of the fleet, for which nobody has to be ranked. */
  readonly hasOnlyChanges?: boolean;
}

/** Open streams per replica. A console has one, and a wall display rarely more than a few. */
const MAX_STREAMS = 32;

/** A stream is ended if its reader takes nothing for this time. */
const MAX_STALLED_MS = 30_000;

/** A stream is ended after this time, so that one with a token that was replaced does not last. The console opens another. */
const MAX_STREAM_MS = 10 * 60_000;

/** Sends the state of the fleet to consoles, once a second. While none is open it does nothing. */
export class FleetFeed {
  readonly #fleet: Fleet;
  readonly #reports: Pick<OwnerReports, 'sumOf'>;
  readonly #losses: () => Promise<Losses>;
  readonly #open = new Set<AbortController>();
  #reading: { readonly atMs: number; readonly result: Promise<FeedReading> } | undefined;

  constructor(fleet: Fleet, reports: Pick<OwnerReports, 'sumOf'>, losses: () => Promise<Losses>) {
    this.#fleet = fleet;
    this.#reports = reports;
    this.#losses = losses;
  }

  async snapshot(shown: FleetView): Promise<FleetSnapshot> {
    return (await this.#read()).snapshot(shown);
  }

  /** The last refusals of one owner: those that replicas report, and what those that do not report yet published. */
  async refusalsOf(owner: RefusedOwner): Promise<readonly RefusedRequest[]> {
    const { pulses } = await this.#read();
    const published = pulses.flatMap(({ refusals }) => refusals).filter((one) => isOf(one, owner));
    const { refusals: own } = await this.#reports.sumOf(owner, false);
    const known = new Set(own.map(({ requestId, atMs }) => `${requestId} ${atMs}`));
    return newestFirst([...own, ...published.filter((one) => !known.has(`${one.requestId} ${one.atMs}`))]);
  }

  /** Whether another stream may be opened. */
  get hasRoom(): boolean {
    return this.#open.size < MAX_STREAMS;
  }

  /** Sends server-sent events until the reader leaves, stalls or the stream is too old. Never rejects. */
  async stream(output: Writable, query: FleetView): Promise<void> {
    const ended = new AbortController();
    const end = () => ended.abort();
    this.#open.add(ended);
    output.on('close', end).on('error', end);
    const openedMs = performance.now();
    let sentMs = openedMs;
    while (!ended.signal.aborted) {
      const nowMs = performance.now();
      if (nowMs - openedMs > MAX_STREAM_MS || nowMs - sentMs > MAX_STALLED_MS) break;
      // An event that was not read yet is not followed by others: every event has the whole state.
      if (output.writableLength === 0) {
        const text = await this.#events(query).catch(() => undefined);
        if (text !== undefined && !ended.signal.aborted) output.write(text);
        sentMs = nowMs;
      }
      const passedMs = performance.now() - nowMs;
      await setTimeout(Math.max(0, pace.publishMs - passedMs), undefined, {
        ref: false,
        signal: ended.signal,
      }).catch(() => undefined);
    }
    this.#open.delete(ended);
    if (output.writableLength === 0) output.end();
    else output.destroy();
  }

  close(): void {
    for (const stream of this.#open) stream.abort();
  }

  async #events({ owner, hasOnlyChanges = false, ...shown }: FleetView): Promise<string> {
    const reading = await this.#read();
    const fleet = await (hasOnlyChanges ? reading.changes() : reading.text(shown));
    if (owner === undefined) return fleet;
    return fleet + eventText('refusals', await this.refusalsOf(owner));
  }

  #read(): Promise<FeedReading> {
    const nowMs = performance.now();
    if (this.#reading === undefined || nowMs - this.#reading.atMs > pace.fleetReadingMs) {
      const both = Promise.all([this.#fleet.read(), this.#losses()]);
      this.#reading = { atMs: nowMs, result: both.then((read) => new FeedReading(...read)) };
    }
    return this.#reading.result;
  }
}

/** One reading of the fleet, and the events made of it. */
class FeedReading {
  readonly #reading: FleetReading;
  readonly #losses: Losses;
  readonly #texts = new Map<string, Promise<string>>();

  constructor(reading: FleetReading, losses: Losses) {
    this.#reading = reading;
    this.#losses = losses;
  }

  get pulses() {
    return [...this.#reading.pulses.values()];
  }

  async snapshot({ window, range }: FleetView): Promise<FleetSnapshot> {
    const top = await this.#reading.top(window);
    const recent = window === '10s' ? top : await this.#reading.top('10s');
    return fleetSnapshot(this.#reading, { top, recent, range, losses: this.#losses });
  }

  changes(): string {
    return eventText('changes', fleetChanges(this.#reading));
  }

  text(shown: FleetView): Promise<string> {
    const key = `${shown.window} ${shown.range}`;
    const text =
      this.#texts.get(key) ?? this.snapshot(shown).then((snapshot) => eventText('fleet', snapshot));
    this.#texts.set(key, text);
    return text;
  }
}

function eventText(name: string, data: unknown): string {
  return `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
}
