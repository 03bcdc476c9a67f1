import { type TProperties, Type } from 'typebox';
import { BUCKETS, type BucketDefinition, type OverrideSection } from '../../../domain/buckets.ts';

const MAX_POINTS = 1_000_000_000;
const numberOfPoints = `a whole number from 1 to ${MAX_POINTS}`;

const points = Type.Integer({ minimum: 1, maximum: MAX_POINTS });

const until = Type.String({
  description: 'When the override expires. A date without a time means the end of that day in UTC.',
  pattern:
    '^\\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\\d|3[01])(T([01]\\d|2[0-3]):[0-5]\\d(:[0-5]\\d(\\.\\d+)?)?(Z|[+-]\\d{2}:\\d{2})?)?$',
  expects: 'a date in quotes, such as "2030-01-31" or "2030-01-31T18:00:00Z"',
});

const shadow = Type.Boolean({
  description: 'Count requests and report those that the limit would refuse, but refuse none.',
  default: false,
});

const none = Type.Literal('none');

const closed = <T extends TProperties>(properties: T) =>
  Type.Object(properties, { additionalProperties: false });

const withShadow = closed({ limit: points, shadow });
const withUntil = closed({ limit: points, shadow, until: Type.Optional(until) });

/** The description in the generated reference: `GET and HEAD of one Account.` */
function descriptionOf({ kind, scope }: BucketDefinition): string {
  const methods = kind === 'read' ? 'GET and HEAD' : 'POST, PUT, PATCH and DELETE';
  return `${methods} of ${scope.covers}.`;
}

/** A default always has a value and never expires. */
function defaultOf(bucket: BucketDefinition) {
  const options = { default: bucket.scope.defaults[bucket.kind], description: descriptionOf(bucket) };
  return bucket.scope.mayBeNone
    ? Type.Union([points, none, withShadow], {
        ...options,
        expects: `${numberOfPoints}, none, or { limit, shadow }`,
      })
    : Type.Union([points, withShadow], { ...options, expects: `${numberOfPoints}, or { limit, shadow }` });
}

function overrideOf({ scope }: BucketDefinition) {
  return scope.mayBeNone
    ? Type.Union([points, none, withUntil], {
        expects: `${numberOfPoints}, none, or { limit, shadow, until }`,
      })
    : Type.Union([points, withUntil], { expects: `${numberOfPoints}, or { limit, shadow, until }` });
}

function overridesOf(section: OverrideSection, owners: string) {
  const own = BUCKETS.filter(({ scope }) => scope.overrides === section);
  const properties = Object.fromEntries(
    own.map((bucket) => [bucket.name, Type.Optional(overrideOf(bucket))]),
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
export const limitsSchema = Type.Object(
  {
    windowSeconds: Type.Integer({
      description: 'Length of the sliding window.',
      default: 1,
      minimum: 1,
      maximum: 86_400,
    }),
    defaults: Type.Object(Object.fromEntries(BUCKETS.map((bucket) => [bucket.name, defaultOf(bucket)])), {
      description: 'Points per window for each bucket.',
      default: {},
      additionalProperties: false,
    }),
    accounts,
    organizations,
    addresses,
  },
  { additionalProperties: false },
);

/** An overrides file: the overrides of limits.yaml, without the rest. */
export const overridesSchema = Type.Object(
  { accounts, organizations, addresses },
  { additionalProperties: false },
);
