import type { Ignored } from '../../facts/ignored.ts';
import { matchingEach, parsed } from '../../facts/message-bounds.ts';
import type { Board } from '../../store/shared-store.ts';
import { answered, readOthers } from '../fleet/boards.ts';
import { type FillQuestion, question } from './fills.ts';

/** Questions that a replica asks at a time. In a flood of different callers, it does not ask what others had admitted for the rest. */
const MOST_QUESTIONS = 1_000;

/** Questions of others that a replica answers within `REMEMBERED_MS`. */
const MOST_ANSWERS = 10_000;

/** How long a question is asked, how old one is that is still answered, and for how long it is not answered again. */
const ASKED_MS = 2_000;
const OLDEST_MS = 5_000;
const REMEMBERED_MS = 20_000;

const asQuestions = matchingEach(question, MOST_QUESTIONS);

/** What the replicas ask each other. */
export class FleetQuestions {
  readonly #name: string;
  readonly #sources;
  readonly #board: Board | undefined;
  /** When other replicas asked, by the identity of the refusal. */
  readonly #others = new Map<string, number>();
  #posted: readonly FillQuestion[] = [];

  /** @param board undefined where this process is the only replica */
  constructor(
    name: string,
    sources: { nowMs(): number; readonly ignored: Pick<Ignored, 'add'> },
    board: Board | undefined,
  ) {
    this.#name = name;
    this.#sources = sources;
    this.#board = board;
  }

  /** Shows the other replicas these new questions. Returns them, and the new ones of the others. */
  async exchange(own: readonly FillQuestion[]): Promise<readonly FillQuestion[]> {
    const board = this.#board;
    if (board === undefined) return own;
    const { ignored, nowMs } = this.#sources;
    const now = nowMs();
    this.#posted = [...this.#posted.filter(({ toMs }) => toMs > now - ASKED_MS), ...own].slice(
      -MOST_QUESTIONS,
    );
    if (this.#posted.length > 0) await answered(board.post(JSON.stringify(this.#posted.map(asPosted))));
    const others = await readOthers(board, this.#name, ignored, (text) => asQuestions(parsed(text), ignored));
    for (const [key, toMs] of this.#others) if (toMs < now - REMEMBERED_MS) this.#others.delete(key);
    return [...own, ...[...(others?.values() ?? [])].flat().filter((one) => this.#isNew(one, now))];
  }

  #isNew({ processTag, number, toMs }: FillQuestion, now: number): boolean {
    const key = `${processTag} ${number}`;
    if (toMs <= now - OLDEST_MS || this.#others.has(key) || this.#others.size >= MOST_ANSWERS) return false;
    this.#others.set(key, toMs);
    return true;
  }
}

function asPosted({
  processTag,
  number,
  bucket,
  owner,
  hashTag,
  atMs,
  fromMs,
  toMs,
}: FillQuestion): FillQuestion {
  return { processTag, number, bucket, owner, hashTag, atMs, fromMs, toMs };
}
