import { Type } from 'typebox';

const cost = (description: string, fallback?: number, minimum = 1) =>
  Type.Integer({
    description,
    minimum,
    maximum: 1_000_000,
    ...(fallback === undefined ? {} : { default: fallback }),
  });

const document = { minLength: 1, file: true, expects: 'the path of a file' };

const listedOperation = Type.Object(
  {
    method: Type.Union(
      (['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const).map((method) => Type.Literal(method)),
      { description: 'HTTP method.' },
    ),
    path: Type.String({
      description: 'Path, with parameters in braces.',
      pattern: '^/[^\\s?#]*$',
      expects: 'a path such as /v3/things/{thingId}',
    }),
    id: Type.Optional(
      Type.String({ description: 'Name of the operation. Default: method and path.', minLength: 1 }),
    ),
    cost: Type.Optional(cost('Cost in points. Default: 1. A public operation may cost 0.', undefined, 0)),
    kind: Type.Optional(
      Type.Union([Type.Literal('read'), Type.Literal('write')], {
        description: 'Buckets that it is charged to. Default: by its method.',
      }),
    ),
    personOnly: Type.Boolean({ description: 'Charge the Person instead of the Account.', default: false }),
    public: Type.Boolean({
      description: "Needs no token. Charges the client's address instead of the Account.",
      default: false,
    }),
  },
  { additionalProperties: false },
);

/** The operations and their costs. */
export const operationsSchema = Type.Object(
  {
    openapi: Type.Optional(
      Type.Union([Type.String(document), Type.Array(Type.String(document), { minItems: 1 })], {
        description:
          'OpenAPI 3.0, 3.1 or 3.2 documents with `x-weir` costs, in YAML or JSON. Reloaded when they change. ' +
          'Default: `openapi.yaml`, unless `list` is set.',
        expects: 'the path of a file or a list of them',
      }),
    ),
    list: Type.Array(listedOperation, {
      description: 'Operations and costs, instead of or in addition to a document.',
      default: [],
      expects: 'a list of operations, each with method and path',
    }),
    unlisted: Type.Union(
      [
        Type.Literal('charge'),
        Type.Literal('reject'),
        Type.Object({ cost: cost('Cost in points.') }, { additionalProperties: false }),
      ],
      {
        description:
          'What to do with an operation that is not listed: `charge` 1 point and forward it, `{cost: N}` to charge N points, or `reject` it with a 404.',
        default: 'charge',
        expects: 'charge, reject or a mapping such as {cost: 2}',
      },
    ),
    // Contract 8.1 rule 3: "up to 10 points".
    maxCost: cost('Maximum cost of an operation.', 10),
    maxBodyBytes: Type.Integer({
      description: 'Maximum size of a body that is validated. Larger requests get a 413.',
      default: 262_144,
      minimum: 1,
      maximum: 67_108_864,
    }),
    basePath: Type.Optional(
      Type.String({
        description: "Prefix of every path, instead of the base paths in the documents' `servers`.",
        pattern: '^(/[^\\s?#/]+)*$',
        expects: 'a path such as /v3, or nothing',
      }),
    ),
  },
  { description: 'The operations and their costs.', default: {}, additionalProperties: false },
);
