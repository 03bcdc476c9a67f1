import { type Static, Type } from 'typebox';
import { SCOPE_NAMES } from '../../domain/limits/scopes.ts';
import { amount, matching, plainText, timeMs } from '../../facts/message-bounds.ts';
import type { Recent } from '../../observe/usage/activity.ts';
import { extract } from '../../observe/usage/extract.ts';
import { SERIES_SLICES } from '../../observe/usage/windows.ts';
import { type RefusedOwner, type RefusedRequest, refusedRequest } from './refusals.ts';

/** Owners that one replica asks about at a time, and refusals of each: a report has about 10 kB. */
export const MOST_ASKED = 16;
export const MOST_REFUSALS = 40;

/** More operations than a replica counts by name. */
const MOST_OPERATIONS = 50;

const counts = Type.Object({ points: amount, requests: amount, refused: amount });

const owner = Type.Object({
  scope: Type.Union(SCOPE_NAMES.map((scope) => Type.Literal(scope))),
  id: plainText(256),
});

const report = Type.Object({
  owner,
  windows: Type.Object({ '10s': counts, '1m': counts, '10m': counts }),
  operations: Type.Array(
    Type.Object({ operation: plainText(2_000), points: amount, requests: amount, refused: amount }),
    {
      maxItems: MOST_OPERATIONS,
    },
  ),
  accounts: extract,
  series: Type.Array(counts, { maxItems: SERIES_SLICES }),
  refusals: Type.Array(refusedRequest, { maxItems: MOST_REFUSALS }),
});

const publication = Type.Object({
  takenAtMs: timeMs,
  /** Host name of the replica. One of an earlier version does not publish it. */
  name: Type.Optional(plainText(255)),
  reports: Type.Array(report),
});

/** What one replica publishes of the owners that somebody asks about. */
export type PublishedReports = Static<typeof publication>;

/** What one replica knows of an owner's last minutes. */
export type OwnerReport = Recent & { readonly refusals: readonly RefusedRequest[] };

export const asPublication = matching(publication);

const asked = Type.Object({ ...owner.properties, yields: Type.Optional(Type.Boolean()) });

/** Whom a replica was asked about. It yields to others if a caller asks about itself. */
export interface AskedOwner extends RefusedOwner {
  readonly yields?: boolean;
}

export const asOwners = matching(Type.Array(asked, { maxItems: MOST_ASKED }));
