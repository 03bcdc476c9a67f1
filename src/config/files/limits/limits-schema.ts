import { Type } from 'typebox';
import { LAST_DAY, PERIOD_UNITS, WEEKDAYS } from '../../../domain/limits/calendar.ts';
import {
  CONTRACT_ROWS,
  type ContractRow,
  MAX_PERIOD_LIMIT,
  MAX_WINDOW_LIMIT,
} from '../../../domain/limits/rows.ts';
import {
  type OverrideSection,
  SCOPE_NAMES,
  type ScopeName,
  scopeNamed,
} from '../../../domain/limits/scopes.ts';
import { closed, flag, list, literals, whole } from '../../settings/section.ts';

const numberUpTo = (most: number) => `a whole number from 1 to ${most}`;

const pointsUpTo = (maximum: number) => Type.Integer({ minimum: 1, maximum });

const until = Type.String({
  description: 'When the override expires. A date without a time means the end of that day in UTC.',
  pattern:
    '^\\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\\d|3[01])(T([01]\\d|2[0-3]):[0-5]\\d(:[0-5]\\d(\\.\\d+)?)?(Z|[+-]\\d{2}:\\d{2})?)?$',
  expects: 'a date in quotes, such as "2030-01-31" or "2030-01-31T18:00:00Z"',
});

const shadow = flag('Count requests and report those that the limit would refuse, but refuse none.', false);

const none = Type.Literal('none');

const withShadow = (most: number) => closed({ limit: pointsUpTo(most), shadow });
const withUntil = (most: number) => closed({ limit: pointsUpTo(most), shadow, until: Type.Optional(until) });

/** The description in the generated reference: `Reads (GET, HEAD and QUERY) of one Account.` */
function descriptionOf({ kind, scope }: ContractRow): string {
  const methods = kind === 'read' ? 'Reads (GET, HEAD and QUERY)' : 'Writes (all other methods)';
  return `${methods} of ${scopeNamed(scope).covers}.`;
}

/** A number of points, `none` where the limit may be switched off, or a mapping with the number and more. */
function limitOf<T extends ReturnType<typeof withShadow | typeof withUntil>>(
  { mayBeNone, most = MAX_WINDOW_LIMIT }: Pick<NamedRow, 'mayBeNone' | 'most'>,
  mappingUpTo: (most: number) => T,
  options: object = {},
) {
  const [points, mapping] = [pointsUpTo(most), mappingUpTo(most)];
  const keys = Object.keys(mapping.properties).join(', ');
  return mayBeNone
    ? Type.Union([points, none, mapping], {
        ...options,
        expects: `${numberUpTo(most)}, none, or { ${keys} }`,
      })
    : Type.Union([points, mapping], { ...options, expects: `${numberUpTo(most)}, or { ${keys} }` });
}

/** What an owner can have of a further limit. */
export const anyLimit = limitOf({ mayBeNone: true }, withUntil);

/** A default always has a value and never expires. */
function defaultOf(row: ContractRow) {
  const options = { default: row.fallback, description: descriptionOf(row) };
  return limitOf(row, withShadow, options);
}

/** The names of further limits. Such a name is part of keys, headers and metrics. */
export const ROW_NAME = '^[a-z][a-z0-9]*(-[a-z0-9]+)*$';

/** A name of a plan. */
const PLAN_NAME = '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$';

const PER = SCOPE_NAMES.filter((name) => scopeNamed(name).isPer);

const amount = (what: string, most = `${MAX_WINDOW_LIMIT} (${MAX_PERIOD_LIMIT} with a period)`) =>
  Type.Optional(
    Type.Union([pointsUpTo(MAX_PERIOD_LIMIT), none], {
      description: `${what}, or \`none\`: only plans and overrides then have such a limit.`,
      expects: `a whole number from 1 to ${most}, or none`,
    }),
  );

const some = (description: string, expects: string) =>
  Type.Optional(
    list(description, Type.String({ minLength: 1 }), { default: undefined, minItems: 1, expects }),
  );

const furtherLimit = closed({
  per: literals(PER, {
    description: 'Whose requests are counted together. Addresses are counted on public operations only.',
  }),
  points: amount('Points per window or period'),
  requests: amount('Instead of points: requests per window or period'),
  concurrent: amount(
    'Instead of points, and without a window: requests that are in flight at the same time',
    `${MAX_WINDOW_LIMIT}`,
  ),
  window: Type.Optional(
    Type.String({
      description: 'Length of the sliding window, from `1s` to `31d`.',
      pattern: '^[1-9]\\d{0,6}[smhd]$',
      expects:
        'a time from 1s to 31d, such as 30s, 1m, 24h or 30d (for calendar months, write period: month)',
    }),
  ),
  period: Type.Optional(
    literals(PERIOD_UNITS, {
      description: 'Instead of a window: a period of the calendar, which ends for all points at once.',
      expects: 'hour, day, week, month or year (a time such as 30d is a window)',
    }),
  ),
  timeZone: Type.Optional(
    Type.String({
      description: 'Whose calendar a period follows, by its name in the IANA database. `UTC` without one.',
      minLength: 1,
      expects: 'the name of a time zone, such as Europe/Berlin',
    }),
  ),
  startsOn: Type.Optional(
    Type.Union(
      [Type.Integer({ minimum: 1, maximum: LAST_DAY }), ...WEEKDAYS.map((day) => Type.Literal(day))],
      {
        description:
          'When a period begins. A month: on this day, or on its last day if it has fewer. A week: on this weekday. The 1st and `monday` without one.',
        expects: `a day of the month from 1 to ${LAST_DAY}, or a weekday such as monday`,
      },
    ),
  ),
  kind: Type.Optional(literals(['read', 'write'], { description: 'Counts only reads, or only writes.' })),
  operations: some(
    'Counts only these: ids, or a method and a path with `*` for a segment and `**` for a rest, such as `POST /v3/search/**`.',
    'a list of operations, such as [searchPayees, "POST /v3/search/**"]',
  ),
  tags: some('Counts only operations with one of these tags of the OpenAPI document.', 'a list of tags'),
  shadow: Type.Optional(shadow),
  durable: Type.Optional(
    Type.Boolean({
      description:
        'False: the counts are not recorded in the journal. Otherwise it has the counts of every limit with a period, or with a window of an hour or longer.',
    }),
  ),
});

/** A row that the file names, as far as sections refer to it. Its scope is undefined if the file has none that is valid. */
export interface NamedRow {
  readonly name: string;
  readonly scope: ScopeName | undefined;
  readonly mayBeNone: boolean;
  /** Its highest limit, if that is another one than of windows. */
  readonly most?: number;
}

const CONTRACT: readonly NamedRow[] = CONTRACT_ROWS;

/** Limits of single owners, of the rows that are counted for them. */
function overridesOf(
  section: OverrideSection,
  rows: readonly NamedRow[],
  owners: string,
  others: object = {},
) {
  const own = [...CONTRACT, ...rows].filter(
    ({ scope }) => scope === undefined || scopeNamed(scope).overrides === section,
  );
  const properties = Object.fromEntries(own.map((row) => [row.name, Type.Optional(limitOf(row, withUntil))]));
  return Type.Record(Type.String(), closed({ ...properties, until: Type.Optional(until), ...others }), {
    description: `Limits of individual ${owners}. A limit that is left out keeps its default.`,
    default: {},
  });
}

const periodStartsOn = {
  periodStartsOn: Type.Optional(
    Type.Integer({
      description: 'The day of the month on which its months begin, for limits with `period: month`.',
      minimum: 1,
      maximum: LAST_DAY,
    }),
  ),
};

const plan = {
  ...periodStartsOn,
  plan: Type.Optional(
    Type.String({
      description: 'The plan whose limits apply where the owner has none of its own.',
      pattern: PLAN_NAME,
      expects: 'the name of a plan',
    }),
  ),
};

/** The sections with overrides, in which the contract's buckets and `rows` can be named. */
function sectionsOf(rows: readonly NamedRow[]) {
  return {
    accounts: overridesOf('accounts', rows, 'Accounts, by id', plan),
    organizations: overridesOf('organizations', rows, 'Organizations, by id', plan),
    addresses: overridesOf(
      'addresses',
      rows,
      'client addresses on public operations: IPv4 addresses and IPv6 /64 networks such as "2001:db8:0:1::/64"',
    ),
    principals: overridesOf(
      'principals',
      rows,
      'principals, by id: the buckets of a Person on Person-only operations, and further limits per principal or service account',
      periodStartsOn,
    ),
  };
}

/** Plans set the limits of Accounts, Organizations and principals. Persons and addresses have no plan. */
function plansOf(rows: readonly NamedRow[]) {
  const own = [...CONTRACT, ...rows].filter(({ scope }) => scope !== 'person' && scope !== 'address');
  const properties = Object.fromEntries(
    own.map((row) => [row.name, Type.Optional(limitOf(row, withShadow))]),
  );
  return Type.Record(Type.String({ pattern: PLAN_NAME }), closed(properties), {
    description: 'Limits by plan. A limit that is left out keeps its default.',
    keys: '<plan>',
    keysExpect: 'be up to 64 letters, digits, `.`, `_` and `-`, the first a letter or digit',
    default: {},
  });
}

/** limits.yaml: the limits of contract section 8.1, and further ones with names of the file. */
export function limitsSchemaOf(rows: readonly NamedRow[]) {
  return closed({
    windowSeconds: whole("Length of the sliding window of the contract's buckets.", 1, [1, 86_400]),
    defaults: closed(Object.fromEntries(CONTRACT_ROWS.map((row) => [row.name, defaultOf(row)])), {
      description: 'Points per window for each bucket.',
      default: {},
    }),
    limits: Type.Record(Type.String(), furtherLimit, {
      description: 'Further limits, by name, each with a window of its own.',
      keys: '<name>',
      default: {},
    }),
    plans: plansOf(rows),
    ...sectionsOf(rows),
  });
}

/** An overrides file: the overrides of limits.yaml, without the rest. */
export function overridesSchemaOf(rows: readonly NamedRow[]) {
  return closed(sectionsOf(rows));
}

/** The schema for references, without names of a file. */
export const limitsSchema = limitsSchemaOf([]);
