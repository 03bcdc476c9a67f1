import { catalog } from '../catalog/catalog.ts';
import { reservedTypes } from '../catalog/reserved.ts';

/** One record of `GET /v3/platform/webhook-event-types` (contract section 2.2). */
export interface EventType {
  readonly type: string;
  readonly contractStatus: 'Published' | 'Planned';
  readonly availableForSubscription: boolean;
  readonly resource: string;
  readonly domain: string;
  readonly payloadTier: string;
  readonly moneyMovement: boolean;
  readonly allowedRoutingSubjectTypes: readonly string[];
  readonly description: string;
}

/** Every event type: the 111 published ones in the catalog's order, then the reserved ones. */
export const eventTypes: readonly EventType[] = [
  ...Object.entries(catalog).flatMap(([resource, entry]) =>
    Object.entries(entry.events).map(
      ([part, description]): EventType => ({
        type: `${resource}.${part}`,
        contractStatus: 'Published',
        availableForSubscription: true,
        resource,
        domain: entry.domain,
        payloadTier: 'ResourceLifecycle',
        moneyMovement: entry.moneyMovement === true,
        allowedRoutingSubjectTypes: entry.scopes,
        description,
      }),
    ),
  ),
  ...Object.entries(reservedTypes).map(
    ([type, { domain, description }]): EventType => ({
      type,
      contractStatus: 'Planned',
      availableForSubscription: false,
      resource: type.slice(0, type.indexOf('.')),
      domain,
      payloadTier: 'ResourceLifecycle',
      moneyMovement: false,
      allowedRoutingSubjectTypes: ['Account'],
      description,
    }),
  ),
];

const byName = new Map(eventTypes.map((type) => [type.type, type]));

/** The record of a published or reserved name, or undefined if the catalog has no such name. */
export function findEventType(name: string): EventType | undefined {
  return byName.get(name);
}
