/** The limit that a descriptor of a request brings along. */
import {
  type DescriptorLimit,
  MOST_REQUESTS,
  UNIT_SECONDS,
  type UnitName,
} from '../../../domain/limits/descriptors.ts';
import { LONGEST_WINDOW_SECONDS } from '../../../domain/limits/rows.ts';
import type { RateLimitOverride, WholeNumber } from './messages.ts';

/** Why a request cannot be decided. */
export class InvalidRequest extends Error {
  override readonly name = 'InvalidRequest';
}

export function numberOf(value: WholeNumber): number {
  return typeof value === 'number' ? value : value.toNumber();
}

/** The numbers of envoy.type.v3.RateLimitUnit and of the unit of a response. */
export const UNIT_NUMBERS: Readonly<Record<UnitName, number>> = {
  second: 1,
  minute: 2,
  hour: 3,
  day: 4,
  week: 7,
  month: 5,
  year: 6,
};

const UNITS = new Map(Object.entries(UNIT_NUMBERS).map(([name, number]) => [number, name as UnitName]));

/** The limit that a descriptor carries. It replaces the limit of a rule. */
export function overridden({
  requestsPerUnit,
  unit: number,
  unitMultiplier,
}: RateLimitOverride): DescriptorLimit {
  const unit = UNITS.get(number);
  if (unit === undefined) throw new InvalidRequest(`The limit of a descriptor has the unit ${number}.`);
  const windowSeconds = UNIT_SECONDS[unit] * Math.max(1, numberOf(unitMultiplier?.value ?? 1));
  const isYear = unit === 'year' && windowSeconds === UNIT_SECONDS.year;
  if (windowSeconds > LONGEST_WINDOW_SECONDS && !isYear)
    throw new InvalidRequest(
      'The limit of a descriptor has a longer window than 31 days, and is not one year.',
    );
  return {
    label: 'override',
    headerName: 'override',
    name: '',
    unit,
    windowSeconds,
    mode: 'enforced',
    spendsRest: false,
    requestsPerUnit: Math.min(requestsPerUnit, MOST_REQUESTS),
  };
}
