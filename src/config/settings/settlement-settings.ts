import { Type } from 'typebox';
import { POINTER_PATTERN } from '../../domain/settlement/json-pointer.ts';
import { closed, text } from './section.ts';

/** The most that an operation may cost. */
export const MAX_COST = 1_000_000;

const pointer = (description: string) =>
  Type.String({
    description,
    pattern: POINTER_PATTERN,
    expects: 'a JSON Pointer to a member, such as /usage/total_tokens',
  });

/** How many points a request reserves. */
export const reserveSchema = closed(
  {
    json: pointer("JSON Pointer into the request's JSON body."),
    most: Type.Integer({ description: 'The most that is reserved.', minimum: 1, maximum: MAX_COST }),
  },
  {
    description: "Reserve what a member of the request's JSON body says, `cost` if it is not there.",
    expects: 'a mapping such as {json: /max_tokens, most: 32000}',
  },
);

/** Where the final cost is found. */
export const settleSchema = closed(
  {
    json: Type.Optional(pointer("JSON Pointer into the response's JSON body, or its server-sent events.")),
    header: Type.Optional(
      text('A field or trailer of the response.', {
        pattern: "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$",
        expects: 'the name of a header field, such as x-cost',
      }),
    ),
    bytes: Type.Optional(
      Type.Integer({
        description: "Bytes of the response's body for each point.",
        minimum: 1,
        maximum: 1_000_000_000,
      }),
    ),
  },
  {
    description: 'Where the final cost is found when the response has ended: one of these.',
    expects: 'a mapping with one of json, header or bytes',
  },
);

/** The responses that cost nothing. */
export const refundOnSchema = (description: string, fallback?: []) =>
  Type.Array(
    Type.Union([Type.Integer({ minimum: 200, maximum: 599 }), Type.String({ pattern: '^[2-5]xx$' })], {
      expects: 'a status from 200 to 599, or a class such as 5xx',
    }),
    {
      description,
      expects: 'a list of statuses, such as [5xx, 404]',
      ...(fallback && { default: fallback }),
    },
  );
