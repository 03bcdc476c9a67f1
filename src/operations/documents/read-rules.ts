import { isMapping } from '../../config/reader/schema-node.ts';
import type { RequestRules } from '../listed-operation.ts';
import type { Check, Shape, ValueRule } from '../validation/parameter-value.ts';
import type { HeaderRule, PathRule } from '../validation/path-and-headers.ts';
import type { QueryRule, QueryRules } from '../validation/query.ts';
import { child, itemsOf, type Node } from './documents.ts';
import type { Parameter } from './parameters.ts';
import { readBodyRules } from './read-body.ts';
import { compiledCheck, isFlat, leftUnread, type RuleMaker, valueRule } from './rule-maker.ts';
import {
  decodedLiteral,
  escapeExpression,
  isParameter,
  parameterExpression,
  segmentParts,
} from './segment.ts';

/** Header fields that OpenAPI describes elsewhere in the document (3.1, section 4.8.12.2.1). */
const IGNORED_HEADERS = new Set(['accept', 'content-type', 'authorization']);

/** The parts of an operation that are validated. */
export interface Described {
  readonly parameters: readonly Parameter[];
  /** The query parameters that carry API keys. They are accepted although no parameter declares them. */
  readonly queryKeys: readonly Parameter[];
  /** Undefined if bodies are not validated. */
  readonly requestBody: Node | undefined;
  /**
   * What happens to a query parameter that the operation does not declare. With `reject`, an operation that declares none
   * accepts all, because the document may describe only costs.
   */
  readonly undeclaredQuery: 'reject-all' | 'reject' | 'forward';
}

/**
 * The rules for requests of an operation, from its declared parameters and body.
 *
 * @param path includes the base path of the servers. Parameters are found by their position in it
 */
export function readRules(
  maker: RuleMaker,
  path: string,
  { parameters, queryKeys, requestBody, undeclaredQuery }: Described,
): RequestRules {
  const inQuery = parameters.filter((one) => one.in === 'query');
  // OpenAPI 3.2 section 4.12.2: the whole query is one value.
  const isWhole = parameters.some((one) => one.in === 'querystring');
  const isOpen =
    isWhole || undeclaredQuery === 'forward' || (undeclaredQuery === 'reject' && inQuery.length === 0);
  const query = readQueryRules(maker, isOpen ? inQuery : [...queryKeys, ...inQuery]);
  return {
    query: isOpen ? { ...query, isOpen, isUnread: inQuery.length === 0 } : query,
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
  const rule = textRule(maker, parameter);
  if (rule === undefined) return [];
  const within =
    text === `{${parameter.name}}` ? undefined : segmentPattern(text, parameter.name, maker.ignoresCase);
  return [{ ...rule, segment, within }];
}

/** The rule of a parameter in the path or in a header, whose value is one text. */
function textRule(maker: RuleMaker, { node, name, schema, isJson }: Parameter) {
  const rule = valueRule(maker, name, schema);
  if (rule === undefined) return undefined;
  const read = isJson || isFlat(rule.shape) ? rule : leftUnread(maker, node, rule);
  return { ...read, isList: rule.shape.types.has('array'), isJson };
}

/**
 * A regular expression for a decoded segment such as `report-{id}.{format}`, with a group for the given parameter. It matches what the
 * router matches.
 */
function segmentPattern(segment: string, name: string, ignoresCase: boolean): RegExp {
  const decoded = segmentParts(segment).map((part, index) =>
    isParameter(index) ? part : decodedLiteral(part),
  );
  const parts = decoded.map((part, index) => {
    if (!isParameter(index)) return escapeExpression(part);
    const parameter = parameterExpression(decoded.slice(index + 1));
    return part === `{${name}}` ? `(${parameter})` : parameter;
  });
  return new RegExp(`^${parts.join('')}$`, ignoresCase ? 'i' : '');
}

function headerRules(maker: RuleMaker, parameter: Parameter): readonly HeaderRule[] {
  const { name, isRequired } = parameter;
  const lowerName = name.toLowerCase();
  if (IGNORED_HEADERS.has(lowerName)) return [];
  const rule = textRule(maker, parameter);
  return rule === undefined ? [] : [{ ...rule, lowerName, isRequired }];
}

/** Default schemas of the list parameters (contract section 4.1). Constraints in the document take precedence. */
const PAGE_CONVENTIONS: ReadonlyMap<string, { readonly type: string }> = new Map([
  ['page[size]', { type: 'integer', minimum: 1, maximum: 100 }],
  ['page[token]', { type: 'string', minLength: 1 }],
]);

const SEPARATORS: ReadonlyMap<string, string> = new Map([
  ['form', ','],
  ['spaceDelimited', ' '],
  ['pipeDelimited', '|'],
]);

/** The rules of the declared query parameters. */
function readQueryRules(maker: RuleMaker, parameters: readonly Parameter[]): QueryRules {
  const rules: QueryRule[] = [];
  let isOpen = false;
  for (const parameter of parameters) {
    const rule = readQueryRule(maker, parameter);
    if (rule === undefined) continue;
    if (!isSpreadObject(parameter, rule.shape)) {
      rules.push(readableRule(maker, parameter, rule));
      continue;
    }
    rules.push(...spreadRules(maker, parameter, rule.shape));
    isOpen ||= rule.shape.isOpen;
  }
  const byName = new Map(rules.map((rule) => [rule.name, rule]));
  return { byName, required: rules.filter(({ isRequired }) => isRequired), isOpen };
}

function readQueryRule(maker: RuleMaker, parameter: Parameter): QueryRule | undefined {
  const { name, isRequired, isJson } = parameter;
  const declared = valueRule(maker, name, parameter.schema);
  if (declared === undefined) return undefined;
  const rule = withConvention(maker, declared, [parameter.schema]);
  if (isJson) return { ...rule, isRequired, form: { kind: 'json' } };
  const allowsEmpty = child(parameter.node, 'allowEmptyValue').value === true;
  const check = allowsEmpty ? orEmpty(rule.check) : rule.check;
  return { ...rule, check, isRequired, form: formOf(parameter, rule.shape) };
}

/** OpenAPI 3.1 section 4.8.12.2.1: `?q` and `?q=` are valid whatever the schema says. */
function orEmpty(check: Check): Check {
  return (value, bytes) => {
    const one = Array.isArray(value) && value.length === 1 ? value[0] : value;
    return one === '' ? undefined : check(value, bytes);
  };
}

/** Objects are read from brackets and from JSON. */
function readableRule(maker: RuleMaker, { node }: Parameter, rule: QueryRule): QueryRule {
  const { form, shape } = rule;
  const isRead = form.kind === 'deep' || form.kind === 'json' || isFlat(shape);
  return isRead ? rule : leftUnread(maker, node, rule);
}

/** Adds what the convention says of a parameter, and none of its schemas. */
function withConvention(maker: RuleMaker, rule: ValueRule, schemas: readonly Node[]): ValueRule {
  const convention = PAGE_CONVENTIONS.get(rule.name);
  const [own] = schemas;
  if (convention === undefined || own === undefined) return rule;
  if (schemas.some((one) => maker.schemas.layers(one).length === 0)) return rule;
  const said = schemas.flatMap((one) => maker.schemas.parts(one)).map(({ value }) => value);
  const isSaid = (key: string) => said.some((one) => isMapping(one) && Object.hasOwn(one, key));
  const value = Object.fromEntries(Object.entries(convention).filter(([key]) => !isSaid(key)));
  const check = compiledCheck(maker, { ...own, value });
  if (check === undefined) return rule;
  const shape = isSaid('type') ? rule.shape : { ...rule.shape, types: new Set([convention.type]) };
  return { ...rule, shape, check: every([rule.check, check]) };
}

/** OpenAPI 3.1 section 4.8.12.3: by default, lists are repeated parameters. */
function formOf({ style = 'form', explodes }: Parameter, { types }: Shape): QueryRule['form'] {
  if (style === 'deepObject') return { kind: 'deep' };
  if (!types.has('array')) return { kind: 'single' };
  const separator = SEPARATORS.get(style);
  if (separator === undefined || (explodes ?? style === 'form')) return { kind: 'repeated' };
  return { kind: 'separated', separator };
}

/** Whether an object has the default form, in which each property is a separate parameter. */
function isSpreadObject({ style = 'form', explodes = true, isJson }: Parameter, { types }: Shape): boolean {
  const isObject = types.has('object') && [...types].every((type) => type === 'object' || type === 'null');
  return style === 'form' && explodes && !isJson && isObject;
}

function spreadRules(maker: RuleMaker, parameter: Parameter, shape: Shape): readonly QueryRule[] {
  const parts = maker.schemas.parts(parameter.schema);
  const required = new Set(
    parts.flatMap((part) => itemsOf(child(part, 'required'))).map(({ value }) => value),
  );
  return [...shape.properties].map(([name, within]) => {
    const declared = parts.map((part) => child(child(part, 'properties'), name));
    const schemas = declared.filter(({ value }) => value !== undefined);
    const checks = schemas.flatMap((one) => compiledCheck(maker, one) ?? []);
    const rule = withConvention(maker, { name, shape: within, check: every(checks) }, schemas);
    const isRequired = parameter.isRequired && required.has(name);
    return readableRule(maker, parameter, { ...rule, isRequired, form: formOf(parameter, rule.shape) });
  });
}

/** Reports the issues of the first that has any. */
function every(checks: readonly Check[]): Check {
  return (value, bytes) => {
    for (const check of checks) {
      const issues = check(value, bytes);
      if (issues !== undefined) return issues;
    }
    return undefined;
  };
}
