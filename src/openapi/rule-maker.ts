import type { Problem } from '../config/problem.ts';
import type { Check, ValueRule } from '../validation/parameter-value.ts';
import { type Documents, type Node, problemAt } from './documents.ts';
import type { Schemas, SchemaTrouble } from './schemas.ts';
import { readShape } from './shape.ts';

/** What rules are made from and with. */
export interface RuleMaker {
  readonly documents: Documents;
  readonly schemas: Schemas;
  readonly problems: Problem[];
  readonly maxBodyBytes: number;
}

/** The rule of one value; none, and a problem told, where its schema cannot be compiled. */
export function valueRule(maker: RuleMaker, name: string, schema: Node): ValueRule | undefined {
  const check = compiledCheck(maker, schema);
  return check === undefined ? undefined : { name, check, shape: readShape(maker.documents, schema) };
}

/** A missing schema lets everything through. */
export function compiledCheck(
  maker: RuleMaker,
  schema: Node,
  tells: 'first' | 'all' = 'first',
): Check | undefined {
  if (schema.value === undefined) return () => undefined;
  const check: Check | SchemaTrouble = maker.schemas.compile(schema, tells);
  if (typeof check === 'function') return check;
  const written = maker.documents.follow(schema);
  const at = 'message' in written ? schema : written;
  maker.problems.push(problemAt(at, `its schema cannot be used: ${check.trouble}`));
  return undefined;
}
