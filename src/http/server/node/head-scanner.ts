import { emptyLengthOf, MAX_EMPTY_BYTES } from '../../message/grammar.ts';

const END_OF_HEAD = Buffer.from('\r\n\r\n');
const LINE_FEED = 0x0a;

/** Longer than any version: ` HTTP/1.1`. */
const VERSION_LENGTH = 10;

/**
 * Finds where the head of a request ends, in bytes that arrive in any number of pieces. Looks at each byte a fixed number of times. Ends
 * a head with too many fields behind the first one above the limit.
 */
export class HeadScanner {
  readonly #maxFields: number;
  #lines = 0;
  #isOverfull = false;
  /** The last bytes of the head so far: the end may be split over two pieces. */
  #tail = '';
  /** The end of the request line so far. */
  #line = '';
  #isLineWhole = false;
  #hasBegun = false;
  #emptyBytes = 0;

  constructor(maxFields: number) {
    this.#maxFields = maxFields;
  }

  /** Whether the head has more fields than it may have. */
  get isOverfull(): boolean {
    return this.#isOverfull;
  }

  /** Whether a byte of the head has been read. */
  get hasBegun(): boolean {
    return this.#hasBegun;
  }

  /** Whether so many line ends came in front of the head that none is to be expected. */
  get isFlooded(): boolean {
    return this.#emptyBytes > MAX_EMPTY_BYTES;
  }

  /** Whether the request line names RTSP or ICE instead of HTTP: Node's parser accepts both and does not report which. */
  get namesAnotherProtocol(): boolean {
    return / (?:RTSP|ICE)\/\d\.\d\r?$/.test(this.#line);
  }

  /** How many of the next bytes are line ends in front of the head. */
  emptyLinesIn(bytes: Buffer): number {
    if (this.#hasBegun) return 0;
    const length = emptyLengthOf(bytes);
    this.#emptyBytes += length;
    return length;
  }

  /**
   * Reads the next bytes of the head.
   *
   * @returns where the head ends in these bytes, with the empty line, or its first field too many; undefined if it goes on
   */
  read(bytes: Buffer): number | undefined {
    this.#hasBegun = true;
    const end = this.#endOfField(bytes, this.#endIn(bytes));
    const read = end === undefined ? bytes : bytes.subarray(0, end);
    this.#readLine(read);
    this.#tail = (this.#tail + read.toString('latin1', Math.max(0, read.length - 3))).slice(-3);
    return end;
  }

  /** @returns where the first field too many ends; `headEnd` if there is none */
  #endOfField(bytes: Buffer, headEnd: number | undefined): number | undefined {
    const to = headEnd ?? bytes.length;
    for (
      let feed = bytes.indexOf(LINE_FEED);
      feed !== -1 && feed < to;
      feed = bytes.indexOf(LINE_FEED, feed + 1)
    ) {
      this.#lines++;
      // In front of the fields is the request line, behind them the empty line.
      if (this.#lines < this.#maxFields + 2 || feed + 1 === headEnd) continue;
      this.#isOverfull = true;
      return feed + 1;
    }
    return headEnd;
  }

  #endIn(bytes: Buffer): number | undefined {
    const split = (this.#tail + bytes.toString('latin1', 0, 3)).indexOf('\r\n\r\n');
    if (split !== -1) return split + 4 - this.#tail.length;
    const at = bytes.indexOf(END_OF_HEAD);
    return at === -1 ? undefined : at + 4;
  }

  #readLine(bytes: Buffer): void {
    if (this.#isLineWhole) return;
    const feed = bytes.indexOf(LINE_FEED);
    const end = feed === -1 ? bytes.length : feed;
    const piece = bytes.toString('latin1', Math.max(0, end - VERSION_LENGTH), end);
    this.#line = (this.#line + piece).slice(-VERSION_LENGTH);
    this.#isLineWhole = feed !== -1;
  }
}
