import { isMapping } from '../../config/reader/schema-node.ts';
import { isJson, typeOf } from '../validation/body.ts';
import { child, type Documents, type Node, problemAt } from './documents.ts';
import type { RuleMaker } from './rule-maker.ts';

/** A parameter declared in the document. */
export interface Parameter {
  readonly node: Node;
  readonly name: string;
  readonly in: string;
  readonly isRequired: boolean;
  readonly style: string | undefined;
  readonly explodes: boolean | undefined;
  /** The schema of the value. If the value is JSON text, the schema of the parsed JSON. */
  readonly schema: Node;
  readonly isJson: boolean;
}

/**
 * The parameters of an operation and of its path (OpenAPI 3.1, 4.8.9).
 *
 * @param owners the path and the operation. Parameters of later ones take precedence
 */
export function readParameters(maker: RuleMaker, owners: readonly Node[]): readonly Parameter[] {
  const parameters = new Map<string, Parameter>();
  for (const owner of owners) {
    const list = child(owner, 'parameters');
    if (!Array.isArray(list.value)) {
      if (list.value !== undefined && list.value !== null)
        maker.problems.push(problemAt(list, 'must be a list'));
      continue;
    }
    for (const index of list.value.keys()) {
      const parameter = readParameter(maker, child(list, String(index)));
      if (parameter !== undefined) parameters.set(`${parameter.in} ${parameter.name}`, parameter);
    }
  }
  return [...parameters.values()];
}

function readParameter(maker: RuleMaker, at: Node): Parameter | undefined {
  const { documents, problems } = maker;
  const node = documents.follow(at);
  if ('message' in node) {
    problems.push(node);
    return undefined;
  }
  const { name, in: place, required, style, explode } = isMapping(node.value) ? node.value : {};
  if (typeof name !== 'string' || typeof place !== 'string') {
    problems.push(problemAt(node, 'a parameter needs a name and an in'));
    return undefined;
  }
  const value = schemaOf(maker, node);
  if (value === undefined) return undefined;
  return {
    node,
    name,
    in: place,
    isRequired: required === true,
    style: typeof style === 'string' ? style : undefined,
    explodes: typeof explode === 'boolean' ? explode : undefined,
    ...value,
  };
}

/** The query parameters that have the API keys of an operation (OpenAPI 3.1 section 4.8.27). */
export function readQueryKeys(documents: Documents, operation: Node): readonly Parameter[] {
  const { root } = documents;
  const own = child(operation, 'security').value;
  const security = own === undefined ? child(root, 'security').value : own;
  const schemes = child(child(root, 'components'), 'securitySchemes');
  const names = Array.isArray(security) ? security.filter(isMapping).flatMap(Object.keys) : [];
  return names.flatMap((one) => {
    const node = documents.follow(child(schemes, one));
    if ('message' in node || !isMapping(node.value)) return [];
    const { type, in: place, name } = node.value;
    if (type !== 'apiKey' || place !== 'query' || typeof name !== 'string') return [];
    const plain = { isRequired: false, isJson: false, style: undefined, explodes: undefined };
    return [{ ...plain, node, name, in: place, schema: child(node, 'schema') }];
  });
}

/** A parameter has either a `schema`, or a `content` with one media type (OpenAPI 3.1, 4.8.12). */
function schemaOf(maker: RuleMaker, node: Node) {
  const content = child(node, 'content');
  if (!isMapping(content.value)) return { schema: child(node, 'schema'), isJson: false };
  const mediaType = Object.keys(content.value)[0] ?? '';
  const declared = readMediaType(maker, child(content, mediaType));
  if (declared === undefined) return undefined;
  // The value is one text: `style` and `explode` do not apply.
  return {
    schema: child(declared, 'schema'),
    isJson: isJsonMediaType(mediaType),
    style: undefined,
    explodes: false,
  };
}

/** A media type, or what its `$ref` leads to. Before OpenAPI 3.2, it has no such `$ref`, so one that leads nowhere is only a warning. */
export function readMediaType({ documents, problems, warnings }: RuleMaker, at: Node): Node | undefined {
  const declared = documents.follow(at);
  if (!('message' in declared)) return declared;
  const { value: version } = child(documents.root, 'openapi');
  const isOld = /^3\.[01]\./.test(`${version}`);
  (isOld ? warnings : problems).push(declared);
  return isOld ? at : undefined;
}

/** The ranges of media types that may be JSON. */
const RANGES = new Set(['*/*', 'application/*']);

/** Whether bodies of a declared media type, or range, may be JSON. */
export function isJsonMediaType(declared: string): boolean {
  const mediaType = typeOf(declared);
  return RANGES.has(mediaType) || isJson(mediaType);
}
