import { Type } from 'typebox';

/** What can go upstream as it stands, in X-Principal-Id, X-Account-Id and X-Organization-Id. */
export const ID_PATTERN = '^[\\x21-\\x7e]{1,256}$';
export const ID_IN_WORDS = 'an id: printable ASCII without spaces, 256 characters at most';

const id = (description: string) => Type.String({ description, pattern: ID_PATTERN, expects: ID_IN_WORDS });

const principal = Type.Object(
  {
    type: Type.Union([Type.Literal('Person'), Type.Literal('ServiceAccount')], {
      description: 'What it is.',
    }),
    account: Type.Optional(id('Its own Account: the one it acts on when a request names none.')),
    organization: Type.Optional(
      id('The Organization that owns it; a ServiceAccount only, in place of `account`.'),
    ),
    actsFor: Type.Array(id('An Account.'), {
      description: 'Further Accounts that it may act for.',
      default: [],
      expects: 'a list of Account ids',
    }),
  },
  { additionalProperties: false },
);

/** identities.yaml: who may call, and which Account belongs to which Organization. */
export const identitiesSchema = Type.Object(
  {
    tokens: Type.Record(Type.String(), id('A principal.'), {
      description: 'Bearer token, or `sha256:` and the hex digest of one, to the id of its principal.',
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
                "Whether it is charged to its Organization's buckets as well; it is unless this is false.",
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
