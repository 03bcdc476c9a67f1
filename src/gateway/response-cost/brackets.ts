import { MOST_KEPT } from './collected-bytes.ts';

/**
 * How many brackets more open than close in a part of a JSON text. Brackets in strings do not count.
 *
 * It is a WebAssembly function, because it looks at 64 bytes at a time: 0.4 ns a byte instead of 4 for a loop in JavaScript.
 *
 * @param from outside of a string
 * @returns undefined if the part is too long, or this machine cannot run the function
 */
export function openedBetween(text: Buffer, from: number, to: number): number | undefined {
  const length = to - from;
  if (length > MOST_KEPT) return undefined;
  if (!isCompiled) compiled = compile();
  isCompiled = true;
  if (compiled === undefined) return undefined;
  const { memory, opened } = compiled;
  text.copy(memory, 0, from, to);
  memory.fill(0, length, length + BLOCK);
  return opened(length);
}

interface Compiled {
  readonly memory: Uint8Array;
  readonly opened: (length: number) => number;
}

let isCompiled = false;
let compiled: Compiled | undefined;

const BLOCK = 64;
const PAGE = 65_536;
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
const lessThan = instruction(0x49);
const addInt = instruction(0x6a);
const subtractInt = instruction(0x6b);
const isUnequal = instruction(0x52);
const isBelow = instruction(0x54);
const countOnes = instruction(0x7b);
const add = instruction(0x7c);
const and = instruction(0x83);
const or = instruction(0x84);
const xor = instruction(0x85);
const shiftLeft = instruction(0x86);
const shiftRight = instruction(0x87);
const toInt = instruction(0xa7);
const toLong = instruction(0xad);
const not = (bits: Code) => xor(bits, long(-1n));
const vectorAt = (at: Code, offset: number) => [...at, 0xfd, 0x00, 0x00, offset];
const allBytes = (byte: number) => [...int(byte), 0xfd, 0x0f];
const equalBytes = instruction(0xfd, 0x23);
const orBytes = instruction(0xfd, 0x50);
const bitOfEach = instruction(0xfd, ...unsigned(0x64));
const get = (local: number) => [0x20, local];
const set = (local: number, value: Code) => [...value, 0x21, local];
const when = (condition: Code, then: Code) => [...condition, 0x04, 0x40, ...then, 0x0b];
const whileTrue = (condition: Code, body: Code) => [
  ...[0x03, 0x40],
  ...when(condition, [...body, 0x0c, 1]),
  0x0b,
];

/** The numbers of the function's variables: its parameter, integers of 32 and of 64 bits, and the four vectors of a block. */
const LENGTH = 0;
const [AT, OPENED] = [1, 2];
const [QUOTES, SOLIDI, INSIDE, WAS_INSIDE, FOLLOWS, SUM, IS_ESCAPED] = [3, 4, 5, 6, 7, 8, 9] as const;
const VECTORS = [10, 11, 12, 13];
const LOCALS = [
  [2, 0x7f],
  [7, 0x7e],
  [4, 0x7b],
] as const;

const EVEN_BITS = 0x5555555555555555n;
/** Makes a brace of a bracket, and changes no other byte into one. */
const BRACE_BIT = 0x20;

/** A bit for each byte of the block that is this one. */
const bitsOf = (byte: number) =>
  VECTORS.map((vector, index) =>
    shiftLeft(toLong(bitOfEach(equalBytes(get(vector), allBytes(byte)))), long(BigInt(16 * index))),
  ).reduce((all, bits) => or(all, bits));

/** Quotation marks behind an odd number of reverse solidi do not count. The carry of an addition runs through each row of them. */
const withoutEscaped: Code = [
  ...set(SOLIDI, and(get(SOLIDI), not(get(IS_ESCAPED)))),
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
  ...set(WAS_INSIDE, shiftRight(get(INSIDE), long(63n))),
];

const outsideOfStrings = (byte: number) => toInt(countOnes(and(bitsOf(byte), not(get(INSIDE)))));

const block: Code = [
  ...VECTORS.flatMap((vector, index) => set(vector, vectorAt(get(AT), 16 * index))),
  ...set(QUOTES, bitsOf(0x22)),
  ...set(SOLIDI, bitsOf(0x5c)),
  ...when(isUnequal(or(get(SOLIDI), get(IS_ESCAPED)), long(0n)), withoutEscaped),
  ...insideOfStrings,
  ...VECTORS.flatMap((vector) => set(vector, orBytes(get(vector), allBytes(BRACE_BIT)))),
  ...set(OPENED, addInt(get(OPENED), subtractInt(outsideOfStrings(0x7b), outsideOfStrings(0x7d)))),
  ...set(AT, addInt(get(AT), int(BLOCK))),
];

function compile(): Compiled | undefined {
  const section = (id: number, content: Code) => [id, ...unsigned(content.length), ...content];
  const named = (name: string, kind: Code) => [name.length, ...Buffer.from(name), ...kind];
  const body = [
    LOCALS.length,
    ...LOCALS.flat(),
    ...whileTrue(lessThan(get(AT), get(LENGTH)), block),
    ...get(OPENED),
    0x0b,
  ];
  const module = Uint8Array.from([
    ...[0x00, ...Buffer.from('asm'), 1, 0, 0, 0],
    ...section(1, [1, 0x60, 1, 0x7f, 1, 0x7f]),
    ...section(3, [1, 0]),
    ...section(5, [1, 0, PAGES]),
    ...section(7, [2, ...named('memory', [2, 0]), ...named('opened', [0, 0])]),
    ...section(10, [1, ...unsigned(body.length), ...body]),
  ]);
  // It cannot run where Node is started without its compiler, or on a processor without SSE 4.1.
  if (typeof WebAssembly === 'undefined' || !WebAssembly.validate(module)) return undefined;
  const { memory, opened } = new WebAssembly.Instance(new WebAssembly.Module(module)).exports;
  return { memory: new Uint8Array(memory.buffer), opened };
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
      readonly opened: Compiled['opened'];
    };
  }
}
