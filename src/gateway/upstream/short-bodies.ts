import { totalmem } from 'node:os';
import { Refusal } from '../../domain/problems.ts';
import { bodyTooLong, readWhole } from '../../http/message/whole-body.ts';
import type { PortRequest } from '../entrance.ts';

/** All of these bodies may take an eighth of the memory, and the bodies of one payer an eighth of that. */
const PART = 8;

/**
 * Reads short bodies before their requests ask for a turn: a slow client then keeps no place at an upstream. Above its bounds, bodies are
 * streamed: clients that never finish could hold all the room, so nobody waits for it.
 */
export class ShortBodies {
  /** Of one body. */
  readonly #maxLength: number;
  /** Of all together. */
  readonly #maxBytes: number;
  readonly #byPayer = new Map<string, number>();
  #bytes = 0;

  constructor(maxLength: number, memoryBytes = availableBytes()) {
    this.#maxLength = maxLength;
    this.#maxBytes = memoryBytes / PART;
  }

  /**
   * Reads the body of a request into its exchange.
   *
   * @param payer whose bodies are bounded together
   * @returns undefined if the body is to be streamed; otherwise later: why the request cannot go on
   */
  read({ source: exchange }: PortRequest, payer: string): Promise<Refusal | undefined> | undefined {
    const length = Number(exchange.field('content-length') ?? Number.POSITIVE_INFINITY);
    // The upstream is asked first whether it takes a body that is not yet sent.
    if (length > this.#maxLength || exchange.field('expect') !== undefined) return undefined;
    const held = this.#byPayer.get(payer) ?? 0;
    if (this.#bytes + length > this.#maxBytes || held + length > this.#maxBytes / PART) return undefined;
    this.#hold(payer, length);
    const { onClosed } = exchange;
    exchange.onClosed = () => {
      this.#hold(payer, -length);
      onClosed?.();
    };
    return readInto(exchange, length);
  }

  /** What is held at present. */
  get bytes(): number {
    return this.#bytes;
  }

  #hold(payer: string, change: number): void {
    this.#bytes += change;
    const held = (this.#byPayer.get(payer) ?? 0) + change;
    if (held === 0) this.#byPayer.delete(payer);
    else this.#byPayer.set(payer, held);
  }
}

async function readInto(exchange: PortRequest['source'], length: number): Promise<Refusal | undefined> {
  const body = await readWhole(exchange.readBody(length), bodyTooLong(length).refusal, length);
  if (body instanceof Refusal) return body;
  exchange.body = body;
  return undefined;
}

/** The memory of the machine, or less in a container. */
function availableBytes(): number {
  // 0 if it is not known.
  return Math.min(process.constrainedMemory() || Number.POSITIVE_INFINITY, totalmem());
}
