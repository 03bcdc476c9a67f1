/** How an archive keeps refusals: a line of JSON for each, and a line for each replica that knows what had filled the window. */
import { type Static, Type } from 'typebox';
import { amount, matching, parsed, plainText, timeMs } from '../../facts/message-bounds.ts';
import type { RefusalIdentity } from './id-index.ts';

const text = plainText(2_000);
const id = Type.Union([plainText(256), Type.Null()]);

/** Requests for one operation by one principal that were refused by one bucket within its window. */
const refusal = Type.Object({
  /** When the first of them was refused. Unix time by the clock of Redis, as all times here. */
  atMs: timeMs,
  /** Host name of the replica that refused them. */
  replica: plainText(255),
  operation: text,
  principal: id,
  account: id,
  /** The client of a public operation. */
  address: id,
  cost: amount,
  /** `blocked` for a block. */
  bucket: plainText(100),
  /** Undefined for a block, like what the bucket counts and where its limit comes from. */
  scope: Type.Optional(plainText(30)),
  owner: plainText(256),
  limit: amount,
  windowSeconds: amount,
  counts: Type.Optional(plainText(30)),
  remaining: amount,
  retryAfterMs: amount,
  /** `default`, `plan`, `override` or `live`. */
  source: Type.Optional(plainText(30)),
  plan: Type.Optional(plainText(256)),
  /** When the limit ends. */
  untilMs: Type.Optional(timeMs),
  /** The file and line that set the limit. */
  writtenAt: Type.Optional(text),
  /** Why the store had not decided, so that this replica refused by its part of the limit. */
  degraded: Type.Optional(plainText(30)),
  /** The detail of the client's problem, if no other member gives the reason. */
  detail: Type.Optional(text),
});

export type Refusal = Static<typeof refusal>;

const asRefusal = matching(refusal);

/** The names of the members in a line, which has their values in this order. Lines of one release are all the same. */
const MEMBERS = Object.keys(refusal.properties) as (keyof Refusal)[];

/** What one operation and one principal had spent. `0`: the operation or the principal that was refused. */
const row = Type.Tuple([
  Type.Union([text, Type.Literal(0)]),
  Type.Union([plainText(256), Type.Null(), Type.Literal(0)]),
  amount,
  amount,
]);

/** What one replica had admitted in the window. */
const fill = Type.Tuple([
  plainText(64),
  /** Since when this replica remembers charges, if that is later than the window's begin; else 0. */
  amount,
  Type.Array(row, { maxItems: 1_000 }),
]);

export type Fill = Static<typeof fill>;

const asFill = matching(fill);

/** A refusal, and what each replica had admitted. */
export interface FoundRefusal {
  readonly refusal: Refusal;
  readonly fills: readonly Fill[];
}

export function refusalLine({ number }: RefusalIdentity, one: Refusal): string {
  const values = MEMBERS.map((member) => one[member] ?? 0);
  while (values.at(-1) === 0) values.pop();
  return `${JSON.stringify([number, ...values.map((value, index) => (isNull(one, index) ? null : value))])}\n`;
}

function isNull(one: Refusal, index: number): boolean {
  const member = MEMBERS[index];
  return member !== undefined && one[member] === null;
}

export function fillLine({ number }: RefusalIdentity, one: Fill): string {
  return `${JSON.stringify([number, one])}\n`;
}

/** What the lines of an archive say of one refusal. Undefined if no line is its own. What no replica has written is left out. */
export function readLines(lines: string, number: number): FoundRefusal | undefined {
  let found: Refusal | undefined;
  const fills = new Map<string, Fill>();
  for (const line of lines.split('\n')) {
    const [of, first, ...rest] = listIn(line);
    if (of !== number) continue;
    if (Array.isArray(first)) {
      const known = asFill(first);
      // A replica writes again what it knows better later.
      if (known !== undefined) fills.set(known[0], known);
    } else found ??= asRefusal(membersOf([first, ...rest]));
  }
  return found && { refusal: found, fills: [...fills.values()] };
}

function listIn(line: string): readonly unknown[] {
  const list = parsed(line);
  return Array.isArray(list) ? list : [];
}

/** Members that may be missing are missing where there is a 0. */
function membersOf(values: readonly unknown[]): object {
  const members = MEMBERS.map(
    (member, index) => [member, values[index] ?? (index < values.length ? null : 0)] as const,
  );
  return Object.fromEntries(members.filter(([member, value]) => value !== 0 || !isOptional(member)));
}

function isOptional(member: keyof Refusal): boolean {
  return !refusal.required.some((name) => name === member);
}
