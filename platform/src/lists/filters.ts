import { type RawBuilder, type SqlBool, sql } from 'kysely';
import type { Call } from '../http/call.ts';
import { invalid } from '../http/problems.ts';

/** One `filter[<field>][<operator>]` of a request. openapi.yaml defines which ones a list supports. */
export interface Filter {
  readonly field: string;
  readonly operator: string;
  readonly value: string;
}

const NAME = /^filter\[(\w+)\]\[(\w+)\]$/;

const COMPARISONS: Readonly<Record<string, RawBuilder<unknown>>> = {
  eq: sql`=`,
  ne: sql`<>`,
  gt: sql`>`,
  gte: sql`>=`,
  lt: sql`<`,
  lte: sql`<=`,
};

/** The filters of a request, sorted, regardless of the order in which they were sent. */
export function readFilters(call: Call): Filter[] {
  return Object.entries(call.query)
    .flatMap(([name, value]) => {
      const [, field, operator] = NAME.exec(name) ?? [];
      return field && operator ? [{ field, operator, value: String(value) }] : [];
    })
    .sort((a, b) => (a.field + a.operator < b.field + b.operator ? -1 : 1));
}

/** The filters as one condition on `resources` or `operations`. Fields without a column are members of `fields`. */
export function matchesFilters(filters: readonly Filter[]): RawBuilder<SqlBool> {
  return sql<SqlBool>`(${sql.join([sql`true`, ...filters.map(toCondition)], sql` and `)})`;
}

function toCondition({ field, operator, value }: Filter): RawBuilder<SqlBool> {
  if (operator === 'contains') {
    const pattern = `%${value.replaceAll(/[\\%_]/g, (sign) => `\\${sign}`)}%`;
    return sql<SqlBool>`${columnOf(field)} ilike ${pattern}`;
  }
  const comparison = COMPARISONS[operator];
  if (!comparison)
    throw new Error(`openapi.yaml declares the operator "${operator}", which no list supports.`);
  const operand = field.endsWith('At')
    ? sql`${toTime({ field, operator, value })}::timestamptz`
    : sql`${value}`;
  return sql<SqlBool>`${columnOf(field)} ${comparison} ${operand}`;
}

/** A filter's value as a time for PostgreSQL. Times have milliseconds, so a bound between two of them is the later or the earlier one. */
export function toTime({ field, operator, value }: Filter): string {
  const time = timeOf(value, `filter[${field}][${operator}]`);
  const isBetween = /\.\d{3}0*[1-9]/.test(value);
  const isLater = isBetween && (operator === 'lt' || operator === 'gte');
  // PostgreSQL does not read the next year as JavaScript writes it.
  return new Date(Math.min(LAST_MS, time.getTime() + (isLater ? 1 : 0))).toISOString();
}

const FIRST_MS = Date.parse('0001-01-01T00:00:00Z');
const LAST_MS = Date.parse('9999-12-31T23:59:59.999Z');

/** Throws a 422 that names the field for a leap second, and for a time before the year 1 or after 9999. */
export function timeOf(text: string, field: string): Date {
  const timeMs = Date.parse(text);
  if (timeMs >= FIRST_MS && timeMs <= LAST_MS) return new Date(timeMs);
  throw invalid(field, 'is not a time that can be compared');
}

const COLUMNS: Readonly<Record<string, string>> = {
  status: 'status',
  externalId: 'external_id',
  accountId: 'account_id',
  createdAt: 'created_at',
  updatedAt: 'updated_at',
  // Columns of operations.
  type: 'type',
};

function columnOf(field: string): RawBuilder<unknown> {
  const column = COLUMNS[field];
  if (column !== undefined) return sql.ref(column);
  return field === 'parentId' ? sql`parent ->> 'id'` : sql`fields ->> ${field}`;
}
