import { eventTypes } from '../../platform/src/events/event-types.ts';
import { type Json, refTo } from './files.ts';

/** Events that happen once for each channel (contract section 6.4). */
const PER_CHANNEL = /^Notification\.(Sent|Delivered|Failed)$/;

const published = eventTypes.filter(({ availableForSubscription }) => availableForSubscription);

/** `webhooks`: what a subscriber receives, by event type. */
export function webhooks(): Json {
  return Object.fromEntries(
    published.map(({ type, description }) => [
      type,
      {
        post: {
          operationId: `on${schemaNameOf(type)}`,
          tags: ['Events'],
          summary: description,
          // Signed instead (Standard Webhooks).
          security: [],
          requestBody: {
            required: true,
            content: { 'application/json': { schema: refTo('schemas', schemaNameOf(type)) } },
          },
          responses: { '2XX': { description: 'Delivered. Anything else is tried again.' } },
        },
      },
    ]),
  );
}

/** A schema for every event type (contract section 2.3). */
export function eventSchemas(): Json {
  return Object.fromEntries(
    published.map(({ type, description, resource }) => {
      const parts = {
        ...(PER_CHANNEL.test(type) && { context: refTo('schemas', 'EventContext') }),
        ...(resource === 'InvoicePayment' && { parent: refTo('schemas', 'Parent') }),
        ...(type.endsWith('DepositConfirmed') && { confirmation: refTo('schemas', 'Confirmation') }),
      };
      const own = {
        type: 'object',
        required: ['type', ...Object.keys(parts)],
        properties: { type: { type: 'string', const: type }, ...parts },
      };
      return [schemaNameOf(type), { description, allOf: [refTo('schemas', 'EventEnvelope'), own] }];
    }),
  );
}

/** `InvoiceEventPaid`. Generators leave out the dot of a type, in which alone `Invoice.PaymentFailed` and `InvoicePayment.Failed` differ. */
function schemaNameOf(type: string): string {
  return type.replace('.', 'Event');
}
