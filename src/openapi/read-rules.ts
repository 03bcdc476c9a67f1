import { isMapping } from '../config/reader/schema-node.ts';
import type { BodyRules } from '../validation/body.ts';
import type { HeaderRule } from '../validation/headers.ts';
import type { Check } from '../validation/parameter-value.ts';
import type { PathRule } from '../validation/path.ts';
import type { RequestRules } from '../validation/rules.ts';
import { child, type Node } from './documents.ts';
import { isJsonMediaType, type Parameter } from './parameters.ts';
import { readQueryRules } from './query-rules.ts';
import { compiledCheck, type RuleMaker, valueRule } from './rule-maker.ts';
import { escapeExpression, isParameter, parameterExpression, segmentParts } from './segment.ts';

/** Header fields that OpenAPI describes elsewhere in the document (3.1, section 4.8.12.2.1). */
const IGNORED_HEADERS = new Set(['accept', 'content-type', 'authorization']);

/** The parts of an operation that are validated. */
export interface Described {
  /** Includes the base path of the servers. Parameters are found by their position in it. */
  readonly path: string;
  readonly parameters: readonly Parameter[];
  /** Undefined if bodies are not validated. */
  readonly requestBody: Node | undefined;
  /**
   * Whether an operation without declared query parameters accepts none. If false, its query is not validated, because the
   * document may describe only costs.
   */
  readonly isExact: boolean;
}

/** The rules for requests of an operation, from its declared parameters and body. */
export function readRules(
  maker: RuleMaker,
  { path, parameters, requestBody, isExact }: Described,
): RequestRules {
  const inQuery = parameters.filter((one) => one.in === 'query');
  const query = readQueryRules(maker, inQuery);
  // OpenAPI 3.2 section 4.12.2: the whole query is one value.
  const isWhole = parameters.some((one) => one.in === 'querystring');
  return {
    query: isWhole || (inQuery.length === 0 && !isExact) ? { ...query, isOpen: true } : query,
    path: parameters.filter((one) => one.in === 'path').flatMap((one) => pathRules(maker, path, one)),
    headers: parameters.filter((one) => one.in === 'header').flatMap((one) => headerRules(maker, one)),
    body: requestBody === undefined ? undefined : readBodyRules(maker, requestBody),
  };
}

function pathRules(maker: RuleMaker, path: string, parameter: Parameter): readonly PathRule[] {
  const segments = path.split('/').slice(1);
  const segment = segments.findIndex((one) => one.includes(`{${parameter.name}}`));
  const text = segments[segment];
  // The styles `label` and `matrix` are not validated.
  if (text === undefined || (parameter.style ?? 'simple') !== 'simple') return [];
  const rule = valueRule(maker, parameter.name, parameter.schema);
  if (rule === undefined) return [];
  const within = text === `{${parameter.name}}` ? undefined : segmentPattern(text, parameter.name);
  return [{ ...rule, segment, within, isList: rule.shape.types.has('array') }];
}

/** A regular expression for a segment such as `report-{id}.{format}`, with a group for the given parameter. */
function segmentPattern(segment: string, name: string): RegExp {
  const parts = segmentParts(segment).map((part, index, all) => {
    if (!isParameter(index)) return escapeExpression(part);
    const parameter = parameterExpression(all.slice(index + 1));
    return part === `{${name}}` ? `(${parameter})` : parameter;
  });
  return new RegExp(`^${parts.join('')}$`);
}

function headerRules(maker: RuleMaker, parameter: Parameter): readonly HeaderRule[] {
  const { name, isRequired } = parameter;
  const lowerName = name.toLowerCase();
  if (IGNORED_HEADERS.has(lowerName)) return [];
  const rule = valueRule(maker, name, parameter.schema);
  return rule === undefined
    ? []
    : [{ ...rule, lowerName, isRequired, isList: rule.shape.types.has('array') }];
}

function readBodyRules(maker: RuleMaker, at: Node): BodyRules | undefined {
  const node = maker.documents.follow(at);
  if ('message' in node) {
    maker.problems.push(node);
    return undefined;
  }
  const content = child(node, 'content');
  if (!isMapping(content.value)) return undefined;
  const byMediaType = new Map(
    Object.keys(content.value).map((mediaType) => {
      const schema = child(child(content, mediaType), 'schema');
      return [(mediaType.split(';', 1)[0] ?? '').trim().toLowerCase(), jsonRule(maker, mediaType, schema)];
    }),
  );
  const isRequired = isMapping(node.value) && node.value.required === true;
  return { isRequired, byMediaType, maxBytes: maker.maxBodyBytes };
}

function jsonRule(
  maker: RuleMaker,
  mediaType: string,
  schema: Node,
): { check: Check; checkAll: Check } | undefined {
  if (!isJsonMediaType(mediaType)) return undefined;
  const check = compiledCheck(maker, schema);
  const checkAll = check && compiledCheck(maker, schema, 'all');
  return checkAll && { check, checkAll };
}
