import { type FieldError, PlatformError } from '../http/problems.ts';
import { eventTypes, findEventType } from './event-types.ts';

const resources = new Set(eventTypes.map((type) => type.resource));

/**
 * Whether one of the entries (`Invoice.Paid`, `Invoice.*`, `*`) matches the type. Entries are matched when an event is
 * sent, so a wildcard includes types that are published later (contract section 6.1).
 */
export function isSubscribed(subscribedEvents: readonly string[], type: string): boolean {
  const wildcard = `${type.slice(0, type.indexOf('.'))}.*`;
  return subscribedEvents.some((entry) => entry === '*' || entry === type || entry === wildcard);
}

/** Throws a 422 that names every entry that is reserved or that no type can match. */
export function checkSubscribedEvents(entries: readonly string[]): void {
  const errors = entries.flatMap((entry, index): FieldError[] => {
    const message = refusalOf(entry);
    return message ? [{ field: `subscribedEvents.${index}`, message }] : [];
  });
  if (errors.length === 0) return;
  const detail = errors.map(({ field, message }) => `${field} ${message}`).join('; ');
  throw new PlatformError(422, 'ValidationError', detail, errors);
}

function refusalOf(entry: string): string | undefined {
  if (entry === '*') return undefined;
  if (entry.endsWith('.*')) {
    return resources.has(entry.slice(0, -'.*'.length))
      ? undefined
      : `"${entry}" names no resource of the catalog`;
  }
  const type = findEventType(entry);
  if (!type) return `"${entry}" is not an event type; see GET /v3/platform/webhook-event-types`;
  return type.availableForSubscription ? undefined : `"${entry}" is reserved and cannot be subscribed to`;
}
