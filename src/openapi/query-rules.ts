import { isMapping } from '../config/reader/schema-node.ts';
import type { QueryForm, QueryRule, QueryRules } from '../validation/query.ts';
import type { Shape } from '../validation/texts.ts';
import { child, type Node } from './documents.ts';
import type { Parameter } from './parameters.ts';
import { type RuleMaker, valueRule } from './rule-maker.ts';

/** Default schemas of the list parameters (contract section 4.1). Constraints in the document take precedence. */
const PAGE_CONVENTIONS: ReadonlyMap<string, Readonly<Record<string, unknown>>> = new Map([
  ['page[size]', { type: 'integer', minimum: 1, maximum: 100 }],
  ['page[token]', { type: 'string', minLength: 1 }],
]);

const SEPARATORS: ReadonlyMap<string, string> = new Map([
  ['form', ','],
  ['spaceDelimited', ' '],
  ['pipeDelimited', '|'],
]);

/** The rules of the declared query parameters. */
export function readQueryRules(maker: RuleMaker, parameters: readonly Parameter[]): QueryRules {
  const rules: QueryRule[] = [];
  let isOpen = false;
  for (const parameter of parameters) {
    const rule = readQueryRule(maker, parameter);
    if (rule === undefined) continue;
    if (!isSpreadObject(parameter, rule.shape)) {
      rules.push(rule);
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
  const rule = valueRule(maker, name, withConvention(maker, name, parameter.schema));
  if (rule === undefined) return undefined;
  return { ...rule, isRequired, form: isJson ? { kind: 'json' } : formOf(parameter, rule.shape) };
}

function withConvention(maker: RuleMaker, name: string, schema: Node): Node {
  const convention = PAGE_CONVENTIONS.get(name);
  const node = maker.documents.follow(schema);
  if (convention === undefined || 'message' in node) return schema;
  return { ...node, value: { ...convention, ...(isMapping(node.value) ? node.value : {}) } };
}

/** OpenAPI 3.1 section 4.8.12.3: by default, lists are repeated parameters. */
function formOf({ style = 'form', explodes }: Parameter, { types }: Shape): QueryForm {
  if (style === 'deepObject') return { kind: 'deep' };
  if (!types.has('array')) return { kind: 'single' };
  const separator = SEPARATORS.get(style);
  if (separator === undefined || (explodes ?? style === 'form')) return { kind: 'repeated' };
  return { kind: 'separated', separator };
}

/** Whether an object has the default form, in which each property is a separate parameter. */
function isSpreadObject({ style = 'form', explodes = true, isJson }: Parameter, { types }: Shape): boolean {
  return style === 'form' && explodes && !isJson && types.size === 1 && types.has('object');
}

function spreadRules(maker: RuleMaker, parameter: Parameter, shape: Shape): readonly QueryRule[] {
  const schema = maker.documents.follow(parameter.schema);
  if ('message' in schema) return [];
  const required =
    isMapping(schema.value) && Array.isArray(schema.value.required) ? schema.value.required : [];
  return [...shape.properties.keys()].flatMap((name) => {
    const property = child(child(schema, 'properties'), name);
    const isRequired = parameter.isRequired && required.includes(name);
    return readQueryRule(maker, { ...parameter, name, isRequired, schema: property }) ?? [];
  });
}
