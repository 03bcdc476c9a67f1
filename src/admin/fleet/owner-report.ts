import { type Static, Type } from 'typebox';
import { SCOPE_NAMES } from '../../domain/limits/scopes.ts';
import type { Ignored } from '../../facts/ignored.ts';
import {
  amount,
  matching,
  matchingEach,
  plainText,
  timeMs,
  withReadable,
} from '../../facts/message-bounds.ts';
import type { Recent } from '../../observe/usage/activity.ts';
import { extract } from '../../observe/usage/extract.ts';
import { SERIES_SLICES } from '../../observe/usage/windows.ts';
import { type RefusedOwner, type RefusedRequest, refusedRequest } from './refusals.ts';

/** Owners that one replica asks about at a time, and refusals of each: a report has about 10 kB. */
export const MOST_ASKED = 16;
export const MOST_REFUSALS = 40;

/** Characters of an operation's id. */
export const LONGEST_OPERATION = 2_000;

/** More operations than a replica publishes. One of an earlier version may publish 81. */
const MOST_OPERATIONS = 100;

const counts = Type.Object({ points: amount, requests: amount, refused: amount });

const owner = Type.Object({
  scope: Type.Union(SCOPE_NAMES.map((scope) => Type.Literal(scope))),
  id: plainText(256),
});

const report = Type.Object({
  owner,
  windows: Type.Object({ '10s': counts, '1m': counts, '10m': counts }),
  operations: Type.Array(
    Type.Object({
      operation: plainText(LONGEST_OPERATION),
      points: amount,
      requests: amount,
      refused: amount,
    }),
    {
      maxItems: MOST_OPERATIONS,
    },
  ),
  accounts: extract,
  series: Type.Array(counts, { maxItems: SERIES_SLICES }),
  refusals: Type.Array(refusedRequest, { maxItems: MOST_REFUSALS }),
});

/** Requests with one id that a replica names. */
export const MOST_REQUESTS = 5;

const request = Type.Object({
  /** When it ended: Unix time in milliseconds, by the clock of Redis. */
  atMs: timeMs,
  status: Type.Integer({ minimum: 0, maximum: 999 }),
  /** Null if the request was refused before it was known, as is the next one. */
  operation: Type.Union([plainText(LONGEST_OPERATION), Type.Null()]),
  /** An Account, or the address of a client of a public operation. */
  owner: Type.Union([plainText(256), Type.Null()]),
  /** Why it was refused, or not counted, as in the access log. */
  reason: Type.Union([plainText(100), Type.Null()]),
});

/** A request that ended in the last minutes. */
export type EndedRequest = Readonly<Static<typeof request>>;

/** What does not fit would keep other replicas from reading the rest. */
export const asEndedRequest = matching(request);

const requestsWithId = Type.Object({
  id: plainText(128),
  found: Type.Array(request, { maxItems: MOST_REQUESTS }),
});

const publication = Type.Object({
  takenAtMs: timeMs,
  /** Host name of the replica. One of an earlier version does not publish it. */
  name: Type.Optional(plainText(255)),
  reports: Type.Array(report),
  /** What it knows of the requests that somebody asks for. An earlier version does not publish it. */
  requests: Type.Optional(Type.Array(requestsWithId)),
});

/** What one replica publishes of the owners that somebody asks about. */
export type PublishedReports = Static<typeof publication>;

/** What one replica knows of an owner's last minutes. */
export type OwnerReport = Recent & { readonly refusals: readonly RefusedRequest[] };

const asWhole = matching(publication);
const LISTS = { reports: matching(report), requests: matching(requestsWithId) };

/**
 * What a replica has published, without the reports that cannot be read; undefined for anything else.
 *
 * @param ignored counts the reports that are left out
 */
export function asPublication(value: unknown, ignored?: Pick<Ignored, 'add'>): PublishedReports | undefined {
  return asWhole(withReadable(value, LISTS, ignored));
}

const asked = Type.Object({
  ...owner.properties,
  yields: Type.Optional(Type.Boolean()),
  isRequest: Type.Optional(Type.Boolean()),
});

/** What a replica was asked about: an owner, or the requests with an id. */
export interface Asked extends RefusedOwner {
  /** Whether it yields to others, because a caller asks about itself. */
  readonly yields?: boolean;
  /**
   * Whether the id is the id of requests. The scope then means nothing. It is one that replicas of 0.3.0 know: they report on this owner,
   * and would refuse a list with any other scope.
   */
  readonly isRequest?: boolean;
}

export const asAsked = matchingEach(asked, MOST_ASKED);
