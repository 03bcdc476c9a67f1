import { type TProperties, type TSchema, Type } from 'typebox';

const MOST_POINTS = 1_000_000_000;
const numberOfPoints = `a whole number from 1 to ${MOST_POINTS}`;

const points = (fallback?: number) =>
  Type.Integer({
    minimum: 1,
    maximum: MOST_POINTS,
    ...(fallback === undefined ? {} : { default: fallback }),
  });

const until = Type.String({
  description: 'When the override ends; a date without a time counts whole, in UTC.',
  pattern:
    '^\\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\\d|3[01])(T([01]\\d|2[0-3]):[0-5]\\d(:[0-5]\\d(\\.\\d+)?)?(Z|[+-]\\d{2}:\\d{2})?)?$',
  expects: 'a date in quotes, such as "2030-01-31" or "2030-01-31T18:00:00Z"',
});

const shadow = Type.Boolean({
  description: 'Count, and report what would be refused, but refuse nothing.',
  default: false,
});

const none = Type.Literal('none');

const closed = <T extends TProperties>(properties: T) =>
  Type.Object(properties, { additionalProperties: false });

const withShadow = closed({ limit: points(), shadow });
const withUntil = closed({ limit: points(), shadow, until: Type.Optional(until) });

/** A default is never missing, and never ends. */
const byDefault = (fallback: number, description: string) =>
  Type.Union([points(), withShadow], {
    default: fallback,
    description,
    expects: `${numberOfPoints}, or { limit, shadow }`,
  });

const organizationDefault = (fallback: number, description: string) =>
  Type.Union([points(), none, withShadow], {
    default: fallback,
    description,
    expects: `${numberOfPoints}, none, or { limit, shadow }`,
  });

const accountOverride = Type.Optional(
  Type.Union([points(), withUntil], { expects: `${numberOfPoints}, or { limit, shadow, until }` }),
);

const organizationOverride = Type.Optional(
  Type.Union([points(), none, withUntil], {
    expects: `${numberOfPoints}, none, or { limit, shadow, until }`,
  }),
);

const byId = <T extends TSchema>(override: T, description: string) =>
  Type.Record(Type.String(), override, { description, default: {} });

const accounts = byId(
  closed({
    'account-read': accountOverride,
    'account-write': accountOverride,
    until: Type.Optional(until),
  }),
  'Limits of single Accounts, by id; what is left out keeps its default.',
);

const organizations = byId(
  closed({
    'organization-read': organizationOverride,
    'organization-write': organizationOverride,
    until: Type.Optional(until),
  }),
  'Limits of single Organizations, by id; what is left out keeps its default.',
);

/** limits.yaml: how many points each bucket holds (contract section 8.1). */
export const limitsSchema = Type.Object(
  {
    windowSeconds: Type.Integer({
      description: 'Length of the sliding window.',
      default: 1,
      minimum: 1,
      maximum: 86_400,
    }),
    defaults: Type.Object(
      {
        'account-read': byDefault(500, 'GET and HEAD of one Account.'),
        'account-write': byDefault(250, 'POST, PUT, PATCH and DELETE of one Account.'),
        'organization-read': organizationDefault(2000, 'Reads of all Accounts of one Organization together.'),
        'organization-write': organizationDefault(
          1000,
          'Writes of all Accounts of one Organization together.',
        ),
        'person-read': byDefault(500, 'Reads of one Person on Person-only operations.'),
        'person-write': byDefault(250, 'Writes of one Person on Person-only operations.'),
      },
      { description: 'Points per window of each bucket.', default: {}, additionalProperties: false },
    ),
    accounts,
    organizations,
  },
  { additionalProperties: false },
);

/** A further file of overrides, for more of them than one file should hold. */
export const overridesSchema = Type.Object({ accounts, organizations }, { additionalProperties: false });
