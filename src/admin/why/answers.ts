import { inTurns } from '../../domain/awaitable.ts';
import type { LimitRow } from '../../domain/limits/rows.ts';
import type { UsageBatch } from '../../observe/usage/batch.ts';
import { type FillQuestion, fillsOf, ownersEndedSince, type SpentBy } from './fills.ts';
import type { Lines } from './lines.ts';
import { fillLine, readableOperation } from './refusal.ts';
import type { PendingRefusal } from './refusal-log.ts';

/** How long after a refusal its question is answered once more, if requests were in progress. */
const LATE_MS = 10_000;

/** Answers that are written before yielding to requests. */
const PER_TURN = 1_000;

/** Operations and principals that a replica names. All others are one more. */
const MOST_ROWS = 30;

/** What this replica had admitted in the windows that it is asked about. */
export class Answers {
  readonly #name: string;
  readonly #processTag: number;
  readonly #sources;
  /** What was answered together, and when by `performance.now()`. */
  readonly #answered: { readonly atMs: number; readonly questions: readonly FillQuestion[] }[] = [];
  #addedMs = 0;

  constructor(
    name: string,
    processTag: number,
    sources: { readonly charges: UsageBatch['charges']; nowMs(): number; rows(): readonly LimitRow[] },
  ) {
    this.#name = name;
    this.#processTag = processTag;
    this.#sources = sources;
  }

  /** Adds a line for each question, and for each older one whose answer has changed. */
  async add(lines: Lines, questions: readonly FillQuestion[]): Promise<void> {
    this.#addedMs = performance.now();
    const late = this.#late();
    if (late.length === 0 && questions.length === 0) return;
    const { charges, rows, nowMs } = this.#sources;
    const aheadMs = nowMs() - performance.now();
    const all = late.length === 0 ? questions : [...questions, ...late];
    const fills = await fillsOf(all, charges, rows(), aheadMs);
    const sinceMs = Math.round(charges.sinceMs + aheadMs);
    let index = 0;
    for await (const one of inTurns(all, PER_TURN)) {
      const spent = fills[index++];
      // The others know nothing of it either way.
      if (spent === undefined && one.processTag !== this.#processTag) continue;
      const since = sinceMs > one.fromMs ? sinceMs : 0;
      lines.add(one, fillLine(one, this.#name, since, rowsOf(spent ?? [], one)));
    }
  }

  /** Remembers what the last `add` has answered. */
  expect(questions: readonly FillQuestion[]): void {
    if (questions.length > 0) this.#answered.push({ atMs: this.#addedMs, questions });
  }

  /** Questions whose answer may have changed: requests of their owners have ended since. */
  #late(): readonly FillQuestion[] {
    const late: FillQuestion[] = [];
    while ((this.#answered[0]?.atMs ?? Number.POSITIVE_INFINITY) < this.#addedMs - LATE_MS) {
      const { atMs, questions } = this.#answered.shift() ?? { atMs: 0, questions: [] };
      const owners = ownersEndedSince(this.#sources.charges, atMs);
      if (owners.size > 0) late.push(...questions.filter(({ owner }) => owners.has(owner)));
    }
    return late;
  }
}

/** Rows of an answer, as text. `0` is the operation or the principal that was refused, if this replica knows it. */
function rowsOf(spent: readonly SpentBy[], asked: FillQuestion | PendingRefusal): string {
  const own = 'payer' in asked ? asked : undefined;
  const ownPrincipal = own?.payer?.principal?.id;
  const texts: string[] = [];
  for (const { operation, principal, points, requests } of spent.slice(0, MOST_ROWS)) {
    const of = operation === own?.operation ? '0' : JSON.stringify(readableOperation(operation));
    const by = principal !== null && principal === ownPrincipal ? '0' : JSON.stringify(principal);
    texts.push(`[${of},${by},${points},${requests}]`);
  }
  if (spent.length > MOST_ROWS) {
    const others = spent.slice(MOST_ROWS);
    const sum = (of: 'points' | 'requests') => others.reduce((all, one) => all + one[of], 0);
    texts.push(`["others",null,${sum('points')},${sum('requests')}]`);
  }
  return `[${texts.join()}]`;
}
