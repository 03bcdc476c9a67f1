import { type Static, type TSchema, Type } from 'typebox';
import { MOST_REQUESTS } from '../../../domain/limits/descriptors.ts';
import { isMapping } from '../../reader/schema-node.ts';
import { closed, text } from '../../settings/section.ts';
import type { Immutable } from '../../settings/settings.ts';

/** Envoy sends a handful of entries; no rule needs more. */
const MOST_LEVELS = 20;

const isOn = (description: string) => Type.Optional(Type.Boolean({ description }));

const limit = closed({
  unit: Type.Optional(
    text(
      'The window: `second`, `minute`, `hour`, `day`, `week` or `month` (30 days). Or `year`: a year of the calendar, in UTC.',
    ),
  ),
  requests_per_unit: Type.Optional(
    Type.Integer({
      description: 'Requests in any window. 0 refuses all.',
      minimum: 0,
      maximum: MOST_REQUESTS,
    }),
  ),
  unlimited: isOn('No limit, and no other rule applies.'),
  name: Type.Optional(text('A name by which other rules can replace this one.')),
  replaces: Type.Optional(
    Type.Array(closed({ name: text('The name of the limit.') }), {
      description: 'Limits that do not apply to a request that this one applies to.',
    }),
  ),
});

const lowestRule = closed({
  key: text('The key of the entry.'),
  value: Type.Optional(
    Type.Union([Type.String(), Type.Integer(), Type.Boolean()], {
      description:
        'The value of the entry; `*` stands for any text. Without it, each value has its own count.',
      expects: 'a text',
    }),
  ),
  rate_limit: Type.Optional(limit),
  shadow_mode: isOn('Counts what fits, and refuses nothing.'),
  quota_mode: isOn('Refuses only where all limits of the request that are in quota mode have no room.'),
  share_threshold: isOn('All values that match the wildcard share one count.'),
  spend_rest: isOn(
    'Hits that do not fit spend what is left, for example the hits of a response that has already been sent.',
  ),
  detailed_metric: isOn('Ignored.'),
  value_to_metric: isOn('Ignored.'),
  metadata: Type.Optional(
    Type.Unsafe<Readonly<Record<string, unknown>>>({ type: 'object', expects: 'a mapping' }),
  ),
});

/** A rule as it is written. */
export type WrittenRule = Immutable<Static<typeof lowestRule>> & {
  readonly descriptors?: readonly WrittenRule[];
};

/** The schema of one file, as deep as the file is. */
export function descriptorsSchema(value: unknown): TSchema {
  return closed({
    domain: text('The `domain` of the requests.'),
    descriptors: Type.Optional(Type.Array(ruleSchema(Math.min(MOST_LEVELS, depthOf(value))))),
  });
}

function ruleSchema(levels: number): TSchema {
  return levels <= 1
    ? lowestRule
    : closed({ ...lowestRule.properties, descriptors: Type.Optional(Type.Array(ruleSchema(levels - 1))) });
}

/** How deep the rules are nested, up to one more than they may be. */
function depthOf(value: unknown, most = MOST_LEVELS): number {
  if (most === 0 || !isMapping(value) || !Array.isArray(value.descriptors)) return 1;
  return 1 + value.descriptors.reduce((deepest: number, one) => Math.max(deepest, depthOf(one, most - 1)), 0);
}
