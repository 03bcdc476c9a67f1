import { type TSchema, Type } from 'typebox';
import { MOST_REQUESTS } from '../../../domain/limits/descriptors.ts';
import { isMapping } from '../../reader/schema-node.ts';
import { closed, text } from '../../settings/section.ts';

/** A rule as it is written. */
export interface WrittenRule {
  readonly key: string;
  readonly value?: string | number | boolean;
  readonly rate_limit?: WrittenLimit;
  readonly shadow_mode?: boolean;
  readonly quota_mode?: boolean;
  readonly share_threshold?: boolean;
  readonly spend_rest?: boolean;
  readonly detailed_metric?: boolean;
  readonly value_to_metric?: boolean;
  readonly metadata?: Readonly<Record<string, unknown>>;
  readonly descriptors?: readonly WrittenRule[];
}

export interface WrittenLimit {
  readonly unit?: string;
  readonly requests_per_unit?: number;
  readonly unlimited?: boolean;
  readonly name?: string;
  readonly replaces?: readonly { readonly name: string }[];
}

export interface WrittenDomain {
  readonly domain: string;
  readonly descriptors?: readonly WrittenRule[];
}

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

const RULE = {
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
  metadata: Type.Optional(Type.Unsafe<object>({ type: 'object', expects: 'a mapping' })),
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
    ? closed(RULE)
    : closed({ ...RULE, descriptors: Type.Optional(Type.Array(ruleSchema(levels - 1))) });
}

/** How deep the rules are nested, up to one more than they may be. */
function depthOf(value: unknown, most = MOST_LEVELS): number {
  if (most === 0 || !isMapping(value) || !Array.isArray(value.descriptors)) return 1;
  return 1 + value.descriptors.reduce((deepest: number, one) => Math.max(deepest, depthOf(one, most - 1)), 0);
}
