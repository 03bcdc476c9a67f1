import { isMapping } from '../../config/reader/schema-node.ts';
import { type BodyRules, exactTypeOf, type JsonRule, typeOf } from '../validation/body.ts';
import type { Check } from '../validation/parameter-value.ts';
import { child, type Node, problemAt } from './documents.ts';
import { isJsonMediaType, readMediaType } from './parameters.ts';
import { compiledCheck, type RuleMaker } from './rule-maker.ts';

/** OpenAPI 3.2 section 4.15.2: the schema of each item of a stream. */
const ITEMS = ['is not validated', 'bodies of this media type are streamed'] as const;

/** The rules of a declared body. Undefined if it has no content, or if its `$ref` leads nowhere. */
export function readBodyRules(maker: RuleMaker, at: Node): BodyRules | undefined {
  const node = maker.documents.follow(at);
  if ('message' in node) {
    maker.problems.push(node);
    return undefined;
  }
  const content = child(node, 'content');
  if (!isMapping(content.value)) return undefined;
  const isRequired = isMapping(node.value) && node.value.required === true;
  return { isRequired, byMediaType: readContent(maker, content), maxBytes: maker.maxBodyBytes };
}

/**
 * The rules by media type. Types that differ only in parameters are listed with them, and without them as one type that accepts what any of
 * them accepts, unless the document has it.
 */
function readContent(maker: RuleMaker, content: Node): BodyRules['byMediaType'] {
  const exact = new Map<string, JsonRule | undefined>();
  const anyOf = new Map<string, JsonRule | undefined>();
  for (const written of Object.keys(content.value as object)) {
    const mediaType = readMediaType(maker, child(content, written));
    if (mediaType === undefined) continue;
    const items = child(mediaType, 'itemSchema');
    if (items.value !== undefined) maker.warnings.push(problemAt(items, ...ITEMS));
    const rule = jsonRule(maker, written, child(mediaType, 'schema'));
    add(exact, exactTypeOf(written), rule);
    add(anyOf, typeOf(written), rule);
  }
  return new Map([...anyOf, ...exact]);
}

/** Adds a rule for a type. A type with several rules accepts what any of them accepts. */
function add(rules: Map<string, JsonRule | undefined>, type: string, rule: JsonRule | undefined): void {
  const earlier = rules.get(type);
  if (earlier === undefined || rule === undefined) rules.set(type, rule);
  else
    rules.set(type, {
      check: either(earlier.check, rule.check),
      checkAll: either(earlier.checkAll, rule.checkAll),
    });
}

/** Reports the issues of the last. */
function either(one: Check, last: Check): Check {
  return (value, bytes) => one(value, bytes) && last(value, bytes);
}

function jsonRule(maker: RuleMaker, mediaType: string, schema: Node): JsonRule | undefined {
  if (!isJsonMediaType(mediaType)) return undefined;
  const check = compiledCheck(maker, schema);
  const checkAll = check && compiledCheck(maker, schema, 'all');
  return checkAll && { check, checkAll };
}
