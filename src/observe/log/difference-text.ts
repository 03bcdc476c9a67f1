import { isDeepStrictEqual } from 'node:util';
import { shownTime } from '../../domain/shown.ts';

/** One difference of a change. */
export interface Difference {
  readonly change: 'added' | 'removed' | 'changed';
  /** The Account, Organization, address or principal; missing for a default. */
  readonly id?: string;
  /** The plan whose limit it is. */
  readonly plan?: string;
  readonly bucket?: string;
  readonly operation?: string;
  /** What it is, where it has neither a bucket nor an operation: `principal`, `token` or `account`. */
  readonly what?: string;
  readonly from?: object;
  readonly to?: object;
}

/** What a difference is of: an owner, a plan or an operation. */
export function subjectIn({ id, plan, operation }: Difference): string | undefined {
  return id ?? plan ?? operation;
}

/** Such as `account-read of plan pro 2000 -> 5000`. */
export function differenceText({ change, id, plan, bucket, operation, what, from, to }: Difference): string {
  const whose = id ?? (plan === undefined ? undefined : `plan ${plan}`);
  const thing = operation ?? (bucket !== undefined && whose !== undefined ? `${bucket} of` : bucket) ?? what;
  const name = [thing, whose].filter((part) => part !== undefined).join(' ');
  const [earlier, later] = [membersIn(from), membersIn(to)];
  const [before, after] = [onlyIn(earlier, later), onlyIn(later, earlier)];
  const values = [before, after].filter(({ size }) => size > 0).map(valueText);
  if (values.length === 0 || (change !== 'changed' && values.length < 2))
    return `${name} ${change}${values.map((one) => ` (${one})`)}`;
  return `${name} ${valueText(before) || missing(after)} -> ${valueText(after) || missing(before)}`;
}

type Shown = ReadonlyMap<string, unknown>;

/** The members of a value by the names that the files have for them: each part of a period is one. */
function membersIn(value: object = {}): Shown {
  const members = Object.entries(value).flatMap(([name, one]): [string, unknown][] => {
    if (Array.isArray(one)) return one.length === 0 ? [] : [[name, one]];
    if (typeof one !== 'object' || one === null) return [[name, one]];
    return Object.entries(one).map(([part, of]) => [part === 'unit' ? name : part, of]);
  });
  return new Map(members.filter(([, one]) => one !== undefined));
}

function onlyIn(members: Shown, others: Shown): Shown {
  return new Map([...members].filter(([name, one]) => !isDeepStrictEqual(one, others.get(name))));
}

/** Such as `500`, `10 points` or `organization org_1`. */
function valueText(members: Shown): string {
  return [...members]
    .map(([name, one]) => {
      if (name === 'limit') return String(one);
      if (name === 'until') return `until ${shownTime(String(one))} UTC`;
      if (name === 'cost') return one === 1 ? '1 point' : `${one} points`;
      return `${name} ${Array.isArray(one) ? one.join(' ') : one}`;
    })
    .join(' ');
}

/** Two directions of one change would otherwise have one text. */
function missing(members: Shown): string {
  return `no ${[...members.keys()].join(' or ')}`;
}
