/** How an archive keeps refusals: a line of JSON for each, and a line for each replica that knows what had filled the window. */
import { type Static, Type } from 'typebox';
import { plainLine } from '../../domain/printable.ts';
import { amount, matching, parsed, plainText, timeMs } from '../../facts/message-bounds.ts';
import type { RefusedId } from './id-index.ts';

const LONGEST_TEXT = 2_000;
const text = plainText(LONGEST_TEXT);
const id = Type.Union([plainText(256), Type.Null()]);

/** What differs between callers. */
const ofCaller = {
  /** When the first of them was refused. Unix time by the clock of Redis, as all times here. */
  atMs: timeMs,
  principal: id,
  account: id,
  /** The client of a public operation. */
  address: id,
  owner: plainText(256),
  remaining: amount,
  retryAfterMs: amount,
};

const ofLimit = {
  /** Host name of the replica that refused them. */
  replica: plainText(255),
  operation: text,
  cost: amount,
  /** `blocked` for a block. */
  bucket: plainText(100),
  limit: amount,
  windowSeconds: amount,
  /** Undefined for a block, like what the bucket counts and where its limit comes from. */
  scope: Type.Optional(plainText(30)),
  counts: Type.Optional(plainText(30)),
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
  /** The period of the calendar in which the limit counts: its unit, such as `month`, and when it began. Undefined for a window. */
  period: Type.Optional(Type.Object({ unit: plainText(30), startMs: timeMs })),
};

/** Requests for one operation by one principal that were refused by one bucket within its window. */
const refusal = Type.Object({ ...ofCaller, ...ofLimit });

export type RecordedRefusal = Static<typeof refusal>;

const asRefusal = matching(refusal);

/** The names of the members in a line, which has their values in this order. Lines of one release are all the same. */
const MEMBERS = Object.keys(refusal.properties) as (keyof RecordedRefusal)[];

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

const asFill = matching(fill);

const caller = Type.Tuple([Type.Literal('of'), amount, id, id, id]);

const asCaller = matching(caller);

/** A request that was refused, and why: a refusal, and what each replica had admitted. */
export interface WhyRefused {
  readonly refusal: RecordedRefusal;
  readonly fills: readonly Static<typeof fill>[];
  readonly atMs: number;
  readonly caller: Pick<RecordedRefusal, 'principal' | 'account' | 'address'>;
}

/** The id of an operation, as a line can have it: it is what its document says. */
export function readableOperation(operation: string): string {
  return plainLine(operation, LONGEST_TEXT);
}

/** The first part of the line of a refusal. */
export function callerPart(
  number: number,
  {
    atMs,
    principal,
    account,
    address,
    owner,
    remaining,
    retryAfterMs,
  }: Pick<RecordedRefusal, keyof typeof ofCaller>,
): string {
  const ids = `${JSON.stringify(principal)},${JSON.stringify(account)},${JSON.stringify(address)},${JSON.stringify(owner)}`;
  return `[${number},${atMs},${ids},${remaining},${retryAfterMs}`;
}

/** The rest of the line, which refusals of many callers share. */
export function limitPart(limit: Pick<RecordedRefusal, keyof typeof ofLimit>): string {
  const values = (Object.keys(ofLimit) as (keyof typeof ofLimit)[]).map((member) => limit[member] ?? 0);
  while (values.at(-1) === 0) values.pop();
  return `,${JSON.stringify(values).slice(1)}\n`;
}

/** The line of a further caller that is refused for the same reason. */
export function callerLine(
  number: number,
  of: number,
  { principal, account, address }: WhyRefused['caller'],
): string {
  return `[${number},"of",${of},${JSON.stringify(principal)},${JSON.stringify(account)},${JSON.stringify(address)}]\n`;
}

/** Undefined if no line is of a further caller with this number. */
export function readCaller(
  lines: string,
  number: number,
): (WhyRefused['caller'] & { readonly of: number }) | undefined {
  const at = `\n${lines}`.indexOf(`\n[${number},"of",`);
  if (at === -1) return undefined;
  const found = asCaller(listIn(lines.slice(at).split('\n', 1).join()).slice(1));
  if (found === undefined) return undefined;
  const [, of, principal, account, address] = found;
  return { of, principal, account, address };
}

/** @param rows as JSON */
export function fillLine({ number }: RefusedId, replica: string, sinceMs: number, rows: string): string {
  return `[${number},[${JSON.stringify(replica)},${sinceMs},${rows}]]\n`;
}

/** What the lines of an archive say of one refusal. Undefined if no line is its own. What no replica has written is left out. */
export function readLines(lines: string, number: number): Pick<WhyRefused, 'refusal' | 'fills'> | undefined {
  let found: RecordedRefusal | undefined;
  const fills = new Map<string, Static<typeof fill>>();
  const begin = `[${number},`;
  for (const line of lines.split('\n')) {
    if (!line.startsWith(begin)) continue;
    const [, first, ...rest] = listIn(line);
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

function isOptional(member: keyof RecordedRefusal): boolean {
  return !refusal.required.some((name) => name === member);
}
