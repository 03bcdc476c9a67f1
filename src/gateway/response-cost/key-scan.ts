import { MOST_KEPT } from './collected-bytes.ts';
import { BACKSLASH, CLOSE_OBJECT, OPEN_OBJECT, QUOTE as QUOTATION_MARK } from './json-bytes.ts';

/**
 * Finds members of one object in a JSON text by their name. It is a WebAssembly function, because it looks at 64 bytes at a time: 0.2 ns a
 * byte, where a loop in JavaScript takes 4.
 */
export interface KeyScan {
  /**
   * Takes a text, and the names that it is searched for: in UTF-8 and without escapes.
   *
   * @returns false if the text has more than 1 MiB, or these are more than 1,000 names
   */
  begin(text: Buffer, names: readonly Buffer[]): boolean;
  /**
   * Where the next string begins that stands in the object itself and begins with the name: with 16 bytes of the name and its closing
   * quotation mark. Otherwise where the bracket stands that closes the object.
   *
   * @param from a byte in the object itself
   * @param isInString whether that byte is within a string
   * @param name its index
   * @returns -1 if the text ends before
   */
  next(from: number, isInString: boolean, name: number): number;
}

/** Impossible where WebAssembly cannot run. */
export function keyScan(): KeyScan | 'impossible' {
  compiled ??= compile();
  return compiled;
}

let compiled: KeyScan | 'impossible' | undefined;

const BLOCK = 64;
const PAGE = 65_536;
/** Names stand behind the text: 16 bytes each, and 16 that say which of them count. */
const NAMES_AT = MOST_KEPT + PAGE / 2;
const NAME_BYTES = 16;
const MOST_NAMES = 1_000;
const PAGES = MOST_KEPT / PAGE + 1;

/** A part of the function's code: bytes as the WebAssembly Core Specification has them in section 5.4. */
type Code = readonly number[];

const unsigned = (value: number): Code => (value < 128 ? [value] : [(value % 128) + 128, value >> 7]);
const signed = (value: bigint): Code => {
  const low = Number(BigInt.asUintN(7, value));
  const rest = value >> 7n;
  const isLast = (rest === 0n && low < 64) || (rest === -1n && low >= 64);
  return isLast ? [low] : [low + 128, ...signed(rest)];
};
const instruction =
  (...opcode: Code) =>
  (...operands: readonly Code[]): Code => [...operands.flat(), ...opcode];

const int = (value: number) => [0x41, ...signed(BigInt(value))];
const long = (value: bigint) => [0x42, ...signed(value)];
const isZero = instruction(0x45);
const isOther = instruction(0x47);
const lessThan = instruction(0x49);
const isAtMost = instruction(0x4c);
const addInt = instruction(0x6a);
const orInt = instruction(0x72);
const isUnequal = instruction(0x52);
const isBelow = instruction(0x54);
const trailingZeros = instruction(0x7a);
const countOnes = instruction(0x7b);
const add = instruction(0x7c);
const subtract = instruction(0x7d);
const and = instruction(0x83);
const or = instruction(0x84);
const xor = instruction(0x85);
const shiftLeft = instruction(0x86);
const shiftRight = instruction(0x87);
const toInt = instruction(0xa7);
const toLong = instruction(0xad);
const withSign = instruction(0xac);
const giveBack = instruction(0x0f);
const not = (bits: Code) => xor(bits, long(-1n));
const byteAt = (at: Code) => [...at, 0x2d, 0, 0];
const vectorAt = (at: Code, offset: number) => [...at, 0xfd, 0x00, 0, offset];
const allBytesAt = (at: Code) => [...at, 0xfd, 0x07, 0, 0];
const allBytes = (byte: number) => [...int(byte), 0xfd, 0x0f];
const equalBytes = instruction(0xfd, 0x23);
const andBytes = instruction(0xfd, 0x4e);
const orBytes = instruction(0xfd, 0x50);
const xorBytes = instruction(0xfd, 0x51);
const hasBits = instruction(0xfd, 0x53);
const bitOfEach = instruction(0xfd, ...unsigned(0x64));
const get = (local: number) => [0x20, local];
const set = (local: number, value: Code) => [...value, 0x21, local];
const when = (condition: Code, then: Code) => [...condition, 0x04, 0x40, ...then, 0x0b];
const whileTrue = (condition: Code, body: Code) => [
  ...[0x03, 0x40],
  ...when(condition, [...body, 0x0c, 1]),
  0x0b,
];

/** The numbers of the function's variables: parameters, integers of 32 and of 64 bits, vectors of a block, and vectors of one byte. */
const [AT, LENGTH, IS_IN_STRING, NAME] = [0, 1, 2, 3];
const [DEPTH, FOUND] = [4, 5];
const [QUOTES, SOLIDI, INSIDE, WAS_INSIDE, FOLLOWS, SUM, IS_ESCAPED] = [6, 7, 8, 9, 10, 11, 12] as const;
const [OPENING, CLOSING, EVENTS, BEFORE] = [13, 14, 15, 16];
const VECTORS = [17, 18, 19, 20];
const [QUOTE, SOLIDUS, BRACE_BIT, OPENING_BRACE, CLOSING_BRACE] = [21, 22, 23, 24, 25];
const LOCALS = [
  [2, 0x7f],
  [11, 0x7e],
  [9, 0x7b],
] as const;

const EVEN_BITS = 0x5555555555555555n;

/** The bits of a block's vectors in one integer. */
const bitsOf = (vectors: readonly Code[]) =>
  vectors
    .map((vector, index) => shiftLeft(toLong(bitOfEach(vector)), long(BigInt(16 * index))))
    .reduce((all, bits) => or(all, bits));
const equalTo = (byte: number) => VECTORS.map((vector) => equalBytes(get(vector), get(byte)));

/** Quotation marks behind an odd number of reverse solidi do not count. The carry of an addition runs through each row of them. */
const withoutEscaped: Code = [
  ...set(SOLIDI, and(bitsOf(equalTo(SOLIDUS)), not(get(IS_ESCAPED)))),
  ...set(FOLLOWS, or(shiftLeft(get(SOLIDI), long(1n)), get(IS_ESCAPED))),
  ...set(SUM, add(and(get(SOLIDI), not(or(get(FOLLOWS), long(EVEN_BITS)))), get(SOLIDI))),
  ...set(IS_ESCAPED, toLong(isBelow(get(SUM), get(SOLIDI)))),
  ...set(
    QUOTES,
    and(get(QUOTES), not(and(get(FOLLOWS), xor(long(EVEN_BITS), shiftLeft(get(SUM), long(1n)))))),
  ),
];

/** A bit is set within strings: where an odd number of quotation marks stands before it, or at it. */
const insideOfStrings: Code = [
  ...set(INSIDE, get(QUOTES)),
  ...[1n, 2n, 4n, 8n, 16n, 32n].flatMap((bits) =>
    set(INSIDE, xor(get(INSIDE), shiftLeft(get(INSIDE), long(bits)))),
  ),
  ...set(INSIDE, xor(get(INSIDE), get(WAS_INSIDE))),
  // Of the last byte, in each bit.
  ...set(WAS_INSIDE, shiftRight(get(INSIDE), long(63n))),
];

const outsideOfStrings = (byte: number) => and(bitsOf(equalTo(byte)), not(get(INSIDE)));
const opened = (bits: Code) =>
  addInt(get(DEPTH), toInt(subtract(countOnes(and(get(OPENING), bits)), countOnes(and(get(CLOSING), bits)))));

/** Whether the object itself may be reached: if closing brackets among these bits come first, behind opening ones among those. */
const mayReachObject = (closing: Code, opening: Code) =>
  isAtMost(
    addInt(
      get(DEPTH),
      toInt(subtract(countOnes(and(get(OPENING), opening)), countOnes(and(get(CLOSING), closing)))),
    ),
    int(0),
  );
const FIRST_HALF = long(0xffffffffn);

const isName = isZero(
  hasBits(
    andBytes(xorBytes(vectorAt(get(FOUND), 1), vectorAt(get(NAME), 0)), vectorAt(get(NAME), NAME_BYTES)),
  ),
);
const beginsLikeName = bitsOf(
  VECTORS.map((_, index) => equalBytes(vectorAt(get(AT), 16 * index + 1), allBytesAt(get(NAME)))),
);

const hasEvents = isUnequal(get(EVENTS), long(0n));

/** Looks at each closing bracket of a block, and at each string that begins like the name. */
const returnFirst: Code = [
  ...set(EVENTS, or(get(CLOSING), and(get(QUOTES), get(INSIDE)))),
  ...when(hasEvents, set(EVENTS, and(get(EVENTS), or(get(CLOSING), beginsLikeName)))),
  ...whileTrue(hasEvents, [
    ...set(FOUND, addInt(get(AT), toInt(trailingZeros(get(EVENTS))))),
    ...set(BEFORE, and(subtract(get(EVENTS), long(1n)), not(get(EVENTS)))),
    ...when(
      isZero(opened(get(BEFORE))),
      when(orInt(isOther(byteAt(get(FOUND)), int(QUOTATION_MARK)), isName), giveBack(get(FOUND))),
    ),
    ...set(EVENTS, and(get(EVENTS), subtract(get(EVENTS), long(1n)))),
  ]),
];

const block: Code = [
  ...VECTORS.flatMap((vector, index) => set(vector, vectorAt(get(AT), 16 * index))),
  ...set(QUOTES, bitsOf(equalTo(QUOTE))),
  ...when(
    orInt(
      hasBits(equalTo(SOLIDUS).reduce((all, bytes) => orBytes(all, bytes))),
      isUnequal(get(IS_ESCAPED), long(0n)),
    ),
    withoutEscaped,
  ),
  ...insideOfStrings,
  // Makes a brace of a bracket, and changes no other byte into one.
  ...VECTORS.flatMap((vector) => set(vector, orBytes(get(vector), get(BRACE_BIT)))),
  ...set(OPENING, outsideOfStrings(OPENING_BRACE)),
  ...set(CLOSING, outsideOfStrings(CLOSING_BRACE)),
  ...when(
    mayReachObject(long(-1n), long(0n)),
    when(orInt(mayReachObject(FIRST_HALF, long(0n)), mayReachObject(long(-1n), FIRST_HALF)), returnFirst),
  ),
  ...set(DEPTH, opened(long(-1n))),
  ...set(AT, addInt(get(AT), int(BLOCK))),
];

function compile(): KeyScan | 'impossible' {
  const section = (id: number, content: Code) => [id, ...unsigned(content.length), ...content];
  const exported = (name: string, kind: Code) => [name.length, ...Buffer.from(name), ...kind];
  const body = [
    LOCALS.length,
    ...LOCALS.flat(),
    ...set(WAS_INSIDE, withSign(get(IS_IN_STRING))),
    ...set(QUOTE, allBytes(QUOTATION_MARK)),
    ...set(SOLIDUS, allBytes(BACKSLASH)),
    ...set(BRACE_BIT, allBytes(0x20)),
    ...set(OPENING_BRACE, allBytes(OPEN_OBJECT)),
    ...set(CLOSING_BRACE, allBytes(CLOSE_OBJECT)),
    ...whileTrue(lessThan(get(AT), get(LENGTH)), block),
    ...int(-1),
    0x0b,
  ];
  const module = Uint8Array.from([
    ...[0x00, ...Buffer.from('asm'), 1, 0, 0, 0],
    ...section(1, [1, 0x60, 4, 0x7f, 0x7f, 0x7f, 0x7f, 1, 0x7f]),
    ...section(3, [1, 0]),
    ...section(5, [1, 0, PAGES]),
    ...section(7, [2, ...exported('memory', [2, 0]), ...exported('next', [0, 0])]),
    ...section(10, [1, ...unsigned(body.length), ...body]),
  ]);
  // It cannot run where Node is started without its compiler, or on a processor without SSE 4.1.
  if (typeof WebAssembly === 'undefined' || !WebAssembly.validate(module)) return 'impossible';
  const { memory, next } = new WebAssembly.Instance(new WebAssembly.Module(module)).exports;
  const bytes = new Uint8Array(memory.buffer);
  let length = 0;
  let known: readonly Buffer[] = [];
  return {
    begin(text, names) {
      length = text.length;
      if (length > MOST_KEPT || names.length > MOST_NAMES) return false;
      bytes.set(text);
      bytes.fill(0, length, length + BLOCK);
      if (names !== known)
        names.forEach((name, index) => {
          const ended = Buffer.from(`${name}"`).subarray(0, NAME_BYTES);
          const at = NAMES_AT + 2 * NAME_BYTES * index;
          bytes.fill(0, at, at + 2 * NAME_BYTES);
          bytes.set(ended, at);
          bytes.fill(0xff, at + NAME_BYTES, at + NAME_BYTES + ended.length);
        });
      known = names;
      return true;
    },
    next: (from, isInString, name) =>
      next(from, length, isInString ? -1 : 0, NAMES_AT + 2 * NAME_BYTES * name),
  };
}

/** What this file uses. Node has it, its types do not. */
declare namespace WebAssembly {
  function validate(module: Uint8Array): boolean;
  class Module {
    constructor(module: Uint8Array);
  }
  class Instance {
    constructor(module: Module);
    readonly exports: {
      readonly memory: { readonly buffer: ArrayBuffer };
      readonly next: (at: number, length: number, isInString: number, name: number) => number;
    };
  }
}
