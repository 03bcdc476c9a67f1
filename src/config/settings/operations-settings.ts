import { Type } from 'typebox';
import { choice, closed, flag, list, literals, section, text, whole } from './section.ts';
import { MAX_COST, refundOnSchema, reserveSchema, settleSchema } from './settlement-settings.ts';

const cost = (description: string, minimum = 1) => Type.Integer({ description, minimum, maximum: MAX_COST });

const document = Type.String({ minLength: 1, file: true, expects: 'the path of a file' });

const listedOperation = closed({
  method: literals(['GET', 'HEAD', 'QUERY', 'POST', 'PUT', 'PATCH', 'DELETE'], {
    description: 'HTTP method.',
  }),
  path: Type.String({
    description: 'Path, with parameters in braces.',
    pattern: '^/[^\\s?#]*$',
    expects: 'a path such as /v3/things/{thingId}',
  }),
  id: Type.Optional(text('Name of the operation. Default: method and path.')),
  cost: Type.Optional(cost('Cost in points. Default: 1. A public operation may cost 0.', 0)),
  kind: Type.Optional(
    literals(['read', 'write'], { description: 'Buckets that it is charged to. Default: by its method.' }),
  ),
  personOnly: flag('Charge the Person instead of the Account.', false),
  tags: list('Tags, by which limits can select it.', text('A tag.')),
  public: flag("Needs no token. Charges the client's address instead of the Account.", false),
  reserve: Type.Optional(reserveSchema),
  settle: Type.Optional(settleSchema),
  refundOn: Type.Optional(refundOnSchema('Responses that cost nothing. Default: `operations.refundOn`.')),
});

/** The operations and their costs. */
export const operationsSchema = section('The operations and their costs.', {
  openapi: Type.Optional(
    Type.Union([document, Type.Array(document, { minItems: 1 })], {
      description:
        'OpenAPI 3.0, 3.1 or 3.2 documents with `x-weir` costs, in YAML or JSON. Reloaded when they change. ' +
        'Default: `openapi.yaml`, unless `list` is set.',
      expects: 'the path of a file or a list of them',
    }),
  ),
  list: list('Operations and costs, instead of or in addition to a document.', listedOperation, {
    expects: 'a list of operations, each with method and path',
  }),
  unlisted: Type.Union(
    [Type.Literal('charge'), Type.Literal('reject'), closed({ cost: cost('Cost in points.') })],
    {
      description:
        'What to do with an operation that is not listed: `charge` 1 point and forward it, `{cost: N}` to charge N points, or `reject` it with a 404.',
      default: 'charge',
      expects: 'charge, reject or a mapping such as {cost: 2}',
    },
  ),
  undeclaredQuery: choice(
    'What to do with a query parameter that the document does not declare: `reject` it with a 422, or `forward` it. An operation with ' +
      '`x-weir: { validate: parameters }` or `body` rejects it in both cases.',
    ['reject', 'forward'],
  ),
  // Contract 8.1 rule 3: "up to 10 points".
  maxCost: whole(
    `Maximum cost of an operation. One with \`reserve\` or \`settle\` may cost up to ${MAX_COST}.`,
    10,
    [1, MAX_COST],
  ),
  refundOn: refundOnSchema(
    'Responses that cost nothing, by status, such as `[5xx, 404]`. The `refundOn` of an operation replaces it.',
    [],
  ),
  maxBodyBytes: whole(
    'Maximum size of a body that is validated. Larger requests get a 413.',
    262_144,
    [1, 67_108_864],
  ),
  basePath: Type.Optional(
    Type.String({
      description: "Prefix of every path, instead of the base paths in the documents' `servers`.",
      pattern: '^(/[^\\s?#/]+)*$',
      expects: 'a path such as /v3, or nothing',
    }),
  ),
});
