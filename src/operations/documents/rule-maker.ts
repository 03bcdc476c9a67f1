import type { Problem } from '../../config/problem.ts';
import type { Check, ValueRule } from '../validation/parameter-value.ts';
import { DanglingReferences } from './dangling.ts';
import { child, type Documents, type Node, problemAt } from './documents.ts';
import type { SchemaError, Schemas } from './schemas.ts';
import { readShape } from './shape.ts';

/** Dependencies for creating rules. */
export interface RuleMaker {
  readonly documents: Documents;
  readonly schemas: Schemas;
  readonly problems: Problem[];
  readonly maxBodyBytes: number;
}

/** The rule for one value. Undefined, with a problem reported, if its schema cannot be compiled. */
export function valueRule(maker: RuleMaker, name: string, schema: Node): ValueRule | undefined {
  const check = compiledCheck(maker, schema);
  return check === undefined ? undefined : { name, check, shape: readShape(maker.documents, schema) };
}

/** Compiles a schema. Without a schema, every value is valid. */
export function compiledCheck(
  maker: RuleMaker,
  schema: Node,
  reports: 'first' | 'all' = 'first',
): Check | undefined {
  if (schema.value === undefined) return () => undefined;
  const check: Check | SchemaError = maker.schemas.compile(schema, reports);
  if (typeof check === 'function') return check;
  const written = maker.documents.follow(schema);
  const at = 'message' in written ? schema : written;
  const { pattern, reason } = check;
  const dangling = new DanglingReferences(maker.documents);
  dangling.search(schema);
  if (dangling.found.length > 0) {
    maker.problems.push(...dangling.found);
    return undefined;
  }
  const found = pattern === undefined ? undefined : findPattern(maker.documents, at, pattern);
  maker.problems.push(
    found === undefined
      ? problemAt(at, `its schema cannot be used: ${reason}`)
      : problemAt(found, reason, 'rewrite it, or set x-weir: { validate: false } for the operation'),
  );
  return undefined;
}

/** Finds a pattern in a schema and the schemas that it refers to. */
function findPattern(documents: Documents, schema: Node, pattern: string): Node | undefined {
  const seen = new Set<unknown>();
  const waiting = [schema];
  for (const node of waiting) {
    const target = documents.follow(node);
    if ('message' in target || typeof target.value !== 'object' || seen.has(target.value)) continue;
    seen.add(target.value);
    const written = child(target, 'pattern');
    if (written.value === pattern) return written;
    const byPattern = child(child(target, 'patternProperties'), pattern);
    if (byPattern.value !== undefined) return byPattern;
    for (const key of Object.keys(target.value ?? {})) waiting.push(child(target, key));
  }
  return undefined;
}
