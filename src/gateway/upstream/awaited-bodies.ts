import { totalmem } from 'node:os';
import { Refusal } from '../../domain/problems.ts';
import { awaitBeginning, bodyTooLong, readPieces } from '../../http/message/whole-body.ts';
import type { PortRequest } from '../entrance.ts';

/** All of these bodies may take an eighth of the memory, and the bodies of one payer an eighth of that. */
const PART = 8;

/**
 * Reads bodies of known length before their requests ask for a turn, so that a slow client keeps no place at an upstream: short ones whole,
 * and the beginning of longer ones. Above its bounds, bodies are streamed at once: clients that never finish could hold all the room, so
 * nobody waits for it.
 */
export class AwaitedBodies {
  /** Of a short body, and of the beginning of a longer one. */
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
   * Reads a short body into its exchange. Of a longer one, waits for the beginning, which stays in the stream.
   *
   * @param payer whose bodies are bounded together
   * @returns undefined if the body is to be streamed at once; otherwise later: why the request cannot go on
   */
  read({ source: exchange }: PortRequest, payer: string): Promise<Refusal | undefined> | undefined {
    const stated = exchange.field('content-length');
    // The upstream is asked first whether it takes a body that is not yet sent. A client that sends chunks may wait for answers to them.
    if (stated === undefined || exchange.field('expect') !== undefined) return undefined;
    const length = Number(stated);
    const bytes = Math.min(length, this.#maxLength);
    const held = this.#byPayer.get(payer) ?? 0;
    const hasRoom = this.#bytes + bytes <= this.#maxBytes && held + bytes <= this.#maxBytes / PART;
    if (bytes === 0 || !hasRoom) return undefined;
    this.#hold(payer, bytes);
    if (length > bytes)
      return awaitBeginning(exchange.readBody(length), bytes).finally(() => this.#hold(payer, -bytes));
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
  const pieces = await readPieces(exchange.readBody(length), bodyTooLong(length).refusal, length);
  if (pieces instanceof Refusal) return pieces;
  exchange.pieces = pieces;
  return undefined;
}

/** The memory of the machine, or less in a container. */
function availableBytes(): number {
  // 0 if it is not known.
  return Math.min(process.constrainedMemory() || Number.POSITIVE_INFINITY, totalmem());
}
