import { Type } from 'typebox';
import { BUCKETS, type BucketDefinition, type OverrideSection } from '../../../domain/buckets.ts';
import { closed, flag, whole } from '../../settings/section.ts';

const MAX_POINTS = 1_000_000_000;
const numberOfPoints = `a whole number from 1 to ${MAX_POINTS}`;

const points = Type.Integer({ minimum: 1, maximum: MAX_POINTS });

const until = Type.String({
  description: 'When the override expires. A date without a time means the end of that day in UTC.',
  pattern:
    '^\\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\\d|3[01])(T([01]\\d|2[0-3]):[0-5]\\d(:[0-5]\\d(\\.\\d+)?)?(Z|[+-]\\d{2}:\\d{2})?)?$',
  expects: 'a date in quotes, such as "2030-01-31" or "2030-01-31T18:00:00Z"',
});

const shadow = flag('Count requests and report those that the limit would refuse, but refuse none.', false);

const none = Type.Literal('none');

const withShadow = closed({ limit: points, shadow });
const withUntil = closed({ limit: points, shadow, until: Type.Optional(until) });

/** The description in the generated reference: `GET and HEAD of one Account.` */
function descriptionOf({ kind, scope }: BucketDefinition): string {
  const methods = kind === 'read' ? 'GET and HEAD' : 'POST, PUT, PATCH and DELETE';
  return `${methods} of ${scope.covers}.`;
}

/** A number of points, `none` where the scope allows it, or a mapping with the number and more. */
function limitOf<T extends typeof withShadow | typeof withUntil>(
  { scope }: BucketDefinition,
  mapping: T,
  options: object = {},
) {
  const keys = Object.keys(mapping.properties).join(', ');
  return scope.mayBeNone
    ? Type.Union([points, none, mapping], { ...options, expects: `${numberOfPoints}, none, or { ${keys} }` })
    : Type.Union([points, mapping], { ...options, expects: `${numberOfPoints}, or { ${keys} }` });
}

/** A default always has a value and never expires. */
function defaultOf(bucket: BucketDefinition) {
  const options = { default: bucket.scope.defaults[bucket.kind], description: descriptionOf(bucket) };
  return limitOf(bucket, withShadow, options);
}

function overridesOf(section: OverrideSection, owners: string) {
  const own = BUCKETS.filter(({ scope }) => scope.overrides === section);
  const properties = Object.fromEntries(
    own.map((bucket) => [bucket.name, Type.Optional(limitOf(bucket, withUntil))]),
  );
  return Type.Record(Type.String(), closed({ ...properties, until: Type.Optional(until) }), {
    description: `Limits of individual ${owners}. A bucket that is left out keeps its default.`,
    default: {},
  });
}

const accounts = overridesOf('accounts', 'Accounts, by id');
const organizations = overridesOf('organizations', 'Organizations, by id');
const addresses = overridesOf(
  'addresses',
  'client addresses on public operations: IPv4 addresses and IPv6 /64 networks such as "2001:db8:0:1::/64"',
);

/** limits.yaml: the points per window of each bucket (contract section 8.1). */
export const limitsSchema = closed({
  windowSeconds: whole('Length of the sliding window.', 1, [1, 86_400]),
  defaults: closed(Object.fromEntries(BUCKETS.map((bucket) => [bucket.name, defaultOf(bucket)])), {
    description: 'Points per window for each bucket.',
    default: {},
  }),
  accounts,
  organizations,
  addresses,
});

/** An overrides file: the overrides of limits.yaml, without the rest. */
export const overridesSchema = closed({ accounts, organizations, addresses });
