/** The bounds of what replicas read of one another. Another program may have written it, or another version of Weir. */
import { type Static, type TSchema, Type } from 'typebox';
import { Compile, type Validator } from 'typebox/schema';
import { ID_PATTERN } from '../domain/caller.ts';
import { LATEST_MS } from '../domain/clock.ts';
import { PLAIN_TEXT } from '../domain/printable.ts';
import type { Ignored } from './ignored.ts';

/** Unix time. */
export const timeMs = Type.Integer({ minimum: 0, maximum: LATEST_MS });

export const id = Type.String({ pattern: ID_PATTERN });

/** A reason or an author. */
export const reasonText = Type.String({ pattern: PLAIN_TEXT, minLength: 1, maxLength: 200 });

/** A number of events, or of points. */
export const amount = Type.Number({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });

export const plainText = (maxLength: number) => Type.String({ pattern: PLAIN_TEXT, maxLength });

/** The host name of a replica. */
export const hostName = plainText(255);

/** How far ahead of the clock of Redis a fact may be: its clock may have been set back since the fact was made. */
const AHEAD_MS = 86_400_000;

/** Whether a time is not so far in the future that nothing could ever replace the fact. */
export function isMade(atMs: number, nowMs: number): boolean {
  return atMs <= nowMs + AHEAD_MS;
}

/**
 * A function that returns what a value has of the schema, and undefined for a value that does not match it. Compiles the schema for the
 * first value, because a replica without a shared store reads none.
 */
export function matching<T extends TSchema>(schema: T): (value: unknown) => Static<T> | undefined {
  let validator: Validator | undefined;
  return (value) => {
    validator ??= Compile(schema);
    return validator.Check(value) ? (named(schema, value) as Static<T>) : undefined;
  };
}

/** Reads one value; undefined for one that it cannot read. */
type Read = (value: unknown) => object | undefined;

/** Receives how many members of a list were left out. */
type LeftOut = Pick<Ignored, 'add'> | undefined;

/** Like `matching`, for a list. A member that does not match is left out: it must not hide the others. */
export function matchingEach<T extends TSchema>(
  schema: T,
  maxItems: number,
): (value: unknown, leftOut?: LeftOut) => readonly Static<T>[] | undefined {
  const read = matching(schema) as Read;
  return (value, leftOut) =>
    Array.isArray(value) && value.length <= maxItems
      ? (readEach(value, read, leftOut) as readonly Static<T>[])
      : undefined;
}

/** A value whose lists have only the members that can be read. The lists are its own members with these names. */
export function withReadable(
  value: unknown,
  lists: Readonly<Record<string, Read>>,
  leftOut?: LeftOut,
): unknown {
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value).map(([name, list]) => {
    const read = Object.hasOwn(lists, name) ? lists[name] : undefined;
    return [name, read !== undefined && Array.isArray(list) ? readEach(list, read, leftOut) : list];
  });
  return Object.fromEntries(members);
}

function readEach(list: readonly unknown[], read: Read, leftOut: LeftOut): readonly object[] {
  const some = list.flatMap((one) => read(one) ?? []);
  if (some.length < list.length) leftOut?.add('form', list.length - some.length);
  return some;
}

interface SchemaShape {
  readonly properties?: Readonly<Record<string, SchemaShape>>;
  readonly items?: SchemaShape | readonly SchemaShape[];
}

/**
 * A value that matches a schema, without the members that the schema does not name. They are kept within a union or a tuple. While a
 * console is open, a replica reads thousands of lists a second: lists of plain values are not copied.
 */
function named({ properties, items }: SchemaShape, value: unknown): unknown {
  if (Array.isArray(value)) {
    if (items === undefined || isTuple(items) || isPlain(items)) return value;
    return value.map((one) => named(items, one));
  }
  if (properties === undefined || typeof value !== 'object' || value === null) return value;
  const members: Record<string, unknown> = {};
  for (const [name, one] of Object.entries(value)) {
    const schema = Object.hasOwn(properties, name) ? properties[name] : undefined;
    if (schema !== undefined) members[name] = named(schema, one);
  }
  return members;
}

const isPlain = ({ properties, items }: SchemaShape) => properties === undefined && items === undefined;

const isTuple = (items: SchemaShape | readonly SchemaShape[]): items is readonly SchemaShape[] =>
  Array.isArray(items);

/** The value of a JSON text; undefined for any other text. */
export function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
