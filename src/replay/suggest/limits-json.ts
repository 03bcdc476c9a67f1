import { shownRule } from '../../domain/limits/calendar.ts';
import { daysPerSpan } from './days.ts';
import type { LimitsText } from './limits-yaml.ts';
import type { SuggestedLimit } from './search.ts';

/** A suggestion, as `weir replay --suggest --json` prints it. Shares and confidence are from 0 to 1. */
export function limitsJson({ suggestion, mostRefused, confidence, requests, remarks }: LimitsText) {
  return {
    requests,
    /** Requests that all suggested limits together would have refused. */
    refused: suggestion.refused,
    mostRefused,
    confidence,
    notes: remarks,
    limits: suggestion.limits.map(limitJson),
  };
}

function limitJson({ stats, limit, refused, days, confidence }: SuggestedLimit) {
  const { row, requests, windows } = stats;
  return {
    scope: row.scope,
    id: stats.id,
    bucket: stats.name,
    limit,
    /** Present if the base has a shadow limit: the suggested one refuses nothing, either. */
    ...(stats.shadowLimit !== undefined && { shadow: true }),
    counts: row.counts,
    windowSeconds: row.windowSeconds,
    ...(row.period && { period: shownRule(row.period) }),
    requests,
    /** Requests that this bucket alone would have refused. */
    refused,
    shareRefused: refused / requests,
    fullestWindow: stats.fullestWindow,
    'p99.9': windows.quantile(0.999),
    /** How likely this limit is to refuse no larger share in another span of `spanDays`, and how many of them the log has. */
    confidence,
    spans: days,
    spanDays: daysPerSpan(row),
  };
}
