import { Type } from 'typebox';

const cost = (description: string, fallback?: number) =>
  Type.Integer({
    description,
    minimum: 1,
    maximum: 1_000_000,
    ...(fallback === undefined ? {} : { default: fallback }),
  });

const document = { minLength: 1, file: true, expects: 'the path of a file' };

const listedOperation = Type.Object(
  {
    method: Type.Union(
      (['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const).map((method) => Type.Literal(method)),
      { description: 'Its method.' },
    ),
    path: Type.String({
      description: 'Its path, with parameters in braces.',
      pattern: '^/[^\\s?#]*$',
      expects: 'a path such as /v3/things/{thingId}',
    }),
    id: Type.Optional(Type.String({ description: 'Its name; method and path by default.', minLength: 1 })),
    cost: Type.Optional(cost('Points; 1 by default.')),
    kind: Type.Optional(
      Type.Union([Type.Literal('read'), Type.Literal('write')], {
        description: 'Which buckets it spends from; by its method by default.',
      }),
    ),
    personOnly: Type.Boolean({ description: 'Counted for the Person.', default: false }),
  },
  { additionalProperties: false },
);

/** What operations exist and what they cost. */
export const operationsSchema = Type.Object(
  {
    openapi: Type.Optional(
      Type.Union([Type.String(document), Type.Array(Type.String(document), { minItems: 1 })], {
        description:
          'OpenAPI 3.0 or 3.1 documents with `x-weir` prices, YAML or JSON; reloaded while running. ' +
          '`openapi.yaml` where there is no `list` either.',
        expects: 'the path of a file or a list of them',
      }),
    ),
    list: Type.Array(listedOperation, {
      description: 'Operations and prices without a document, or besides it.',
      default: [],
      expects: 'a list of operations, each with method and path',
    }),
    unlisted: Type.Union(
      [
        Type.Literal('charge'),
        Type.Literal('reject'),
        Type.Object({ cost: cost('Points.') }, { additionalProperties: false }),
      ],
      {
        description:
          'An operation that is not listed: `charge` 1 point and forward, `{cost: N}` for another charge, or `reject` with 404.',
        default: 'charge',
        expects: 'charge, reject or a mapping such as {cost: 2}',
      },
    ),
    // Contract 8.1 rule 3: "up to 10 points".
    maxCost: cost('The dearest that an operation may be.', 10),
    maxBodyBytes: Type.Integer({
      description: 'The most that is read of a body that is validated; a larger one gets 413.',
      default: 262_144,
      minimum: 1,
      maximum: 67_108_864,
    }),
    basePath: Type.Optional(
      Type.String({
        description: "Put before every path in place of the base paths of the documents' `servers`.",
        pattern: '^(/[^\\s?#/]+)*$',
        expects: 'a path such as /v3, or nothing',
      }),
    ),
  },
  { description: 'What operations exist and what they cost.', default: {}, additionalProperties: false },
);
