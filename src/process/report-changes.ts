import { hash } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import type { Identities } from '../config/files/identities/parse-identities.ts';
import type { Principal } from '../domain/caller.ts';
import { settlementText } from '../domain/settlement/settlement-text.ts';
import type { Difference } from '../observe/log/difference-text.ts';
import type { Changes } from '../observe/log/noticed-changes.ts';
import type { ListedOperation } from '../operations/listed-operation.ts';
import type { Configuration, Reloadable } from './configuration.ts';

/** Changes that a line lists one by one. */
const MOST_LISTED = 20;

/** Entries compared before yielding to the event loop: about a millisecond of work. */
const SLICE = 2_000;

/** A receiver of reloaded files that also reports what changed in the operations and identities, in one bounded line each. */
export function reportingChanges(
  reloadable: Reloadable,
  { operations, identities, credentials }: Configuration,
  changes: Changes,
  observer: { operationsInForce(sha: string): void },
): Reloadable {
  let current = operations;
  const known = new Map<number | undefined, Identities | undefined>([
    [undefined, identities],
    ...credentials.map((one, index) => [index, one?.identities] as const),
  ]);
  observer.operationsInForce(versionOf(operations));
  const replaced = (index: number | undefined, changed: Identities) => {
    const before = known.get(index);
    known.set(index, changed);
    if (before !== undefined) void reportIdentities(before, changed, changes);
  };
  return {
    ...reloadable,
    operations(changed) {
      reloadable.operations(changed);
      const sha = versionOf(changed);
      observer.operationsInForce(sha);
      const found = differenceOf(valuesOf(current), valuesOf(changed), (value) => value);
      current = changed;
      void found.then((difference) => changes.info({ sha, ...listed(difference) }, 'operations.changed'));
    },
    identities(changed) {
      reloadable.identities(changed);
      replaced(undefined, changed);
    },
    credential(index, changed) {
      reloadable.credential(index, changed);
      replaced(index, changed);
    },
  };
}

/** The start of a SHA-256 of what operations are called and cost, equal on every replica that has the same, also of earlier versions. */
export function versionOf(operations: readonly ListedOperation[]): string {
  const prices = operations.map((one) => [keyOf(one), priceOf(one)] as const);
  const sorted = [...new Map(prices)].sort(([a], [b]) => (a < b ? -1 : 1));
  return hash('sha256', JSON.stringify(sorted)).slice(0, 12);
}

/** What is compared, and how a difference names it. */
interface Value {
  readonly name: Omit<Difference, 'change'>;
  readonly to: object;
}

function valuesOf(operations: readonly ListedOperation[]): ReadonlyMap<string, Value> {
  return new Map(operations.map((one) => [keyOf(one), { name: { operation: one.id }, to: termsOf(one) }]));
}

function keyOf({ method, path }: ListedOperation): string {
  return `${method} ${path}`;
}

function priceOf(operation: ListedOperation): object {
  const { cost, kind, access } = operation;
  const settlement = settlementText(operation);
  return { cost, kind, access, ...(settlement && { settlement }) };
}

/** What a request for an operation is charged and validated by. The tags, because limits select by them. */
function termsOf(operation: ListedOperation): object {
  const { tags = [], validation } = operation;
  return {
    ...priceOf(operation),
    ...(tags.length > 0 && { tags: [...new Set(tags)].sort() }),
    ...(validation !== 'none' && { validate: validation }),
  };
}

async function reportIdentities(before: Identities, after: Identities, changes: Changes): Promise<void> {
  const difference = [
    ...(await differenceOf(before.principals, after.principals, principalValue)),
    ...(await differenceOf(before.accounts, after.accounts, (to, id) => ({
      name: { what: 'account', id },
      to,
    }))),
    ...(await differenceOf(before.tokens, after.tokens, ({ id }) => ({
      name: { what: 'token', id },
      to: {},
    }))),
  ];
  changes.info(listed(difference), 'identities.changed');
}

function principalValue({ claimedAccounts: _, ...principal }: Principal, id: string): Value {
  const actsFor = 'actsFor' in principal ? { actsFor: [...principal.actsFor].sort() } : {};
  const { type, account, organization } = { organization: undefined, ...principal };
  const owner = account === undefined ? { organization } : { account };
  return { name: { what: 'principal', id }, to: { type, ...owner, ...actsFor } };
}

/** What has entries by key: a map, or a table of tokens. */
interface Entries<T> extends Iterable<readonly [key: string, entry: T]> {
  get(key: string): T | undefined;
}

/** Makes the values while it compares, because there may be a million. */
async function differenceOf<T>(
  earlier: Entries<T>,
  later: Entries<T>,
  valueFor: (entry: T, key: string) => Value,
): Promise<readonly Difference[]> {
  const found: Difference[] = [];
  let compared = 0;
  const value = (entry: T | undefined, key: string) =>
    entry === undefined ? undefined : valueFor(entry, key);
  for (const [key, entry] of earlier) {
    if (++compared % SLICE === 0) await setImmediate();
    const [from, to] = [valueFor(entry, key), value(later.get(key), key)];
    if (!isDeepStrictEqual(from, to)) found.push(differenceBetween(from, to));
  }
  for (const [key, entry] of later) {
    if (++compared % SLICE === 0) await setImmediate();
    if (earlier.get(key) === undefined) found.push(differenceBetween(undefined, valueFor(entry, key)));
  }
  return found;
}

/** What was there before and is still there says most. */
const ORDER: readonly Difference['change'][] = ['changed', 'removed', 'added'];

function differenceBetween(from: Value | undefined, to: Value | undefined): Difference {
  const change = from === undefined ? 'added' : to === undefined ? 'removed' : 'changed';
  const isRenamed = from !== undefined && to !== undefined && !isDeepStrictEqual(from.name, to.name);
  const valueIn = (one: Value) => (isRenamed ? { ...one.name, ...one.to } : one.to);
  const values = { ...(from && { from: valueIn(from) }), ...(to && { to: valueIn(to) }) };
  return { change, ...(to ?? from)?.name, ...values };
}

function listed(found: readonly Difference[]) {
  const countOf = (wanted: Difference['change']) => found.filter(({ change }) => change === wanted).length;
  const sorted = found.toSorted((a, b) => ORDER.indexOf(a.change) - ORDER.indexOf(b.change));
  const omitted = Math.max(0, found.length - MOST_LISTED);
  return {
    added: countOf('added'),
    removed: countOf('removed'),
    changed: countOf('changed'),
    difference: sorted.slice(0, MOST_LISTED),
    ...(omitted > 0 && { omitted }),
  };
}
