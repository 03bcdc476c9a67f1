import { Type } from 'typebox';

/** Ids that can be sent upstream unencoded in X-Principal-Id, X-Account-Id and X-Organization-Id. */
export const ID_PATTERN = '^[\\x21-\\x7e]{1,256}$';
export const ID_FORMAT = 'an id: printable ASCII without spaces, at most 256 characters';

const id = (description: string) => Type.String({ description, pattern: ID_PATTERN, expects: ID_FORMAT });

const principal = Type.Object(
  {
    type: Type.Union([Type.Literal('Person'), Type.Literal('ServiceAccount')], {
      description: 'Type of the principal.',
    }),
    account: Type.Optional(id('Its own Account: the target Account of a request that does not name one.')),
    organization: Type.Optional(
      id('The Organization that owns it, instead of `account`. ServiceAccounts only.'),
    ),
    actsFor: Type.Array(id('An Account.'), {
      description: 'Other Accounts that it may act for.',
      default: [],
      expects: 'a list of Account ids',
    }),
  },
  { additionalProperties: false },
);

/** identities.yaml: tokens, principals, and the Organization of each Account. */
export const identitiesSchema = Type.Object(
  {
    tokens: Type.Record(Type.String(), id('A principal.'), {
      description:
        'Maps a bearer token, or `sha256:` followed by its hex digest, to the id of its principal.',
      default: {},
      secret: true,
    }),
    principals: Type.Record(Type.String(), principal, { description: 'Principals by id.', default: {} }),
    accounts: Type.Record(
      Type.String(),
      Type.Object(
        {
          organization: Type.Optional(id('The Organization that it belongs to.')),
          organizationLimit: Type.Optional(
            Type.Boolean({
              description:
                "Whether its requests are also charged to its Organization's buckets. Default: true.",
            }),
          ),
        },
        { additionalProperties: false },
      ),
      { description: 'Accounts by id.', default: {} },
    ),
  },
  { additionalProperties: false },
);
