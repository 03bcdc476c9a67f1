import type { AnySchema } from 'ajv';
import type { Problem } from '../../config/problem.ts';
import { isMapping } from '../../config/reader/schema-node.ts';
import { type Dialect, STEP } from '../validation/engine/engine.ts';
import { PatternError } from '../validation/engine/patterns.ts';
import type { Check } from '../validation/parameter-value.ts';
import { Compiler, type Reports, sharedCompiler } from './compiler.ts';
import { child, type Documents, itemsOf, type Node } from './documents.ts';
import { SchemaReview } from './schema-faults.ts';

/** The reason why a schema cannot be compiled. */
export interface SchemaError {
  readonly reason: string;
  /** The pattern that cannot be used, if that is the reason. */
  readonly pattern?: string;
  /** The schema within it that is the reason, if it is known. */
  readonly at?: Node;
}

/** OpenAPI 3.0 differs from JSON Schema in some keywords. */
const OLD: Dialect = 'openapi-3.0';

/** Id of the schema that contains all files of a description, each under the key `file:<number>`. */
const ROOT = 'weir://description';

/** Compiles the schemas of one description. Each schema is compiled once, even if it is used often. */
export class Schemas {
  readonly #documents: Documents;
  readonly #dialect: Dialect;
  readonly #keys: ReadonlyMap<string, string>;
  /** Of schemas that refer to others. Many descriptions have none where requests are validated. */
  #compiler: Compiler | undefined;
  /** What was compiled, by the schemas in the documents. Many operations may share a schema. */
  readonly #byValue = {
    first: new Map<unknown, Check | SchemaError>(),
    all: new Map<unknown, Check | SchemaError>(),
  };
  /** Copies of what is in the documents. What has several aliases is copied once. */
  readonly #copies = new Map<unknown, unknown>();
  /** Whether a property is `readOnly`, by its schema. */
  readonly #readOnly = new Map<unknown, boolean>();
  readonly #review: SchemaReview;

  constructor(documents: Documents, dialect: Dialect) {
    this.#documents = documents;
    this.#dialect = dialect;
    this.#review = new SchemaReview(documents, dialect === OLD);
    this.#keys = new Map(documents.all().map(({ file }, index) => [file, `file:${index}`]));
  }

  /** Each names a text, a number or a list that stands where a schema belongs in one that was compiled. */
  get warnings(): readonly Problem[] {
    return this.#review.warnings;
  }

  /** The schemas that a value has to match where this one is written: itself, and what its `$ref` leads to. */
  layers(node: Node): readonly Node[] {
    const { nodes, problem } = this.#documents.chain(node);
    if (problem !== undefined) return [];
    return this.#dialect === OLD ? nodes.slice(-1) : nodes;
  }

  /** The layers of a schema, and of every branch of its `allOf`, without what only the compiler finds. */
  parts(node: Node): readonly Node[] {
    const parts = new Map<unknown, Node>();
    const waiting = [node];
    for (const one of waiting) {
      const layers = this.#dialect === OLD ? this.layers(one) : this.#documents.chain(one).nodes;
      for (const layer of layers) {
        if (parts.has(layer.value)) continue;
        parts.set(layer.value, layer);
        const room = MAX_PARTS - waiting.length;
        if (room > 0) waiting.push(...itemsOf(child(layer, 'allOf')).slice(0, room));
      }
    }
    return [...parts.values()];
  }

  /** Compiles a check that reports the first issue, or all issues. */
  compile(node: Node, reports: Reports = 'first'): Check | SchemaError {
    const schema = this.#named(node);
    const known = this.#byValue[reports].get(schema.value);
    if (known !== undefined) return known;
    const check = this.#compile(schema, reports);
    if (typeof schema.value === 'object') this.#byValue[reports].set(schema.value, check);
    return check;
  }

  /** What a schema names that is nothing but a `$ref`: many of them name one. The schema itself if it says more. */
  #named(schema: Node): Node {
    const { nodes } = this.#documents.chain(schema);
    return nodes.find(({ value }) => !this.#isReference(value)) ?? schema;
  }

  #isReference(value: unknown): boolean {
    const isOnly = isMapping(value) && (this.#dialect === OLD || Object.keys(value).length === 1);
    return isOnly && typeof value.$ref === 'string';
  }

  #compile(node: Node, reports: Reports): Check | SchemaError {
    const { value, document, path } = node;
    const text = JSON.stringify(value) ?? '';
    const circular = this.#review.findCircular(node);
    if (circular !== undefined) return { reason: CIRCULAR, at: circular };
    const [compiler, schema] = REFERS.test(text)
      ? [this.#ownCompiler(), { $ref: this.#pointer(document.file, path) }]
      : [
          IDENTIFIES.test(text) ? this.#ownCompiler() : sharedCompiler(this.#dialect),
          this.#translated(value, document),
        ];
    const check = compiler.compile(schema as AnySchema, reports);
    if (!(check instanceof Error)) return check;
    // Ajv reads the members of every schema, and of null it cannot.
    if (check instanceof TypeError) return { reason: EMPTY };
    if (check instanceof PatternError) return { reason: check.message, pattern: check.pattern };
    return { reason: this.#withFiles(check.message) };
  }

  #ownCompiler(): Compiler {
    this.#compiler ??= new Compiler(this.#dialect, [this.#root(), ROOT]);
    return this.#compiler;
  }

  #root(): object {
    const files = this.#documents.all();
    return Object.fromEntries(
      files.map((document) => [this.#keys.get(document.file), this.#translated(document.value, document)]),
    );
  }

  /** A message in which addresses within the root schema are replaced by names of files. */
  #withFiles(message: string): string {
    return message.replace(/weir:\/\/description(?:#\/(file:\d+))?/g, (_, key: string | undefined) => {
      const found = [...this.#keys].find(([, one]) => one === key);
      return found === undefined ? 'the document' : `${found[0]}#`;
    });
  }

  #pointer(file: string, path: readonly string[]): string {
    const words = path.map((word) => encodeURIComponent(word.replaceAll('~', '~0').replaceAll('/', '~1')));
    return `${ROOT}#/${[this.#keys.get(file), ...words].join('/')}`;
  }

  /** A copy whose `$ref`s point into the root schema, converted to the current JSON Schema draft. */
  #translated(value: unknown, document: Node['document']): unknown {
    if (typeof value !== 'object' || value === null) return value;
    const known = this.#copies.get(value);
    if (known !== undefined) return known;
    const copy = isMapping(value)
      ? this.#translatedMapping(value, document)
      : Object.values(value).map((item) => this.#translated(item, document));
    this.#copies.set(value, copy);
    return copy;
  }

  #translatedMapping(value: Readonly<Record<string, unknown>>, document: Node['document']): object {
    const { $ref } = value;
    // OpenAPI 3.0 ignores siblings of a $ref (section 4.7.23).
    if (typeof $ref === 'string' && this.#dialect === OLD)
      return { $ref: this.#reference($ref, document), [STEP]: true };
    const copy: Record<string, unknown> = {};
    for (const [key, one] of Object.entries(value)) copy[key] = this.#translated(one, document);
    if (typeof $ref === 'string') copy.$ref = this.#reference($ref, document);
    if (REFERENCES.some((key) => typeof value[key] === 'string')) copy[STEP] = true;
    // Some real documents have an empty `enum` that is not meant to reject every value.
    if (Array.isArray(copy.enum) && copy.enum.length === 0) delete copy.enum;
    this.#dropReadOnly(copy, { document, path: [], value });
    if (this.#dialect === OLD) modernise(copy);
    return copy;
  }

  /**
   * A required `readOnly` property is required only in responses (OpenAPI 3.0.3 section 4.7.24.2). It may be declared behind a `$ref`, and in
   * another branch of `allOf` than it is required.
   */
  #dropReadOnly(copy: Record<string, unknown>, schema: Node): void {
    const branches = Array.isArray(copy.allOf) ? copy.allOf : [];
    if (![copy, ...branches].some(hasRequired)) return;
    const declared = this.parts(schema).map((part) => child(part, 'properties'));
    const isReadOnly = (name: unknown) =>
      declared.some((properties) => this.#isReadOnly(child(properties, String(name))));
    const kept = (one: unknown) =>
      hasRequired(one) ? { ...one, required: one.required.filter((name) => !isReadOnly(name)) } : one;
    Object.assign(copy, kept(copy));
    if (branches.length > 0) copy.allOf = branches.map(kept);
  }

  #isReadOnly(property: Node): boolean {
    if (!isMapping(property.value)) return false;
    let known = this.#readOnly.get(property.value);
    if (known === undefined) {
      known = this.parts(property).some(({ value }) => isMapping(value) && value.readOnly === true);
      this.#readOnly.set(property.value, known);
    }
    return known;
  }

  #reference(reference: string, document: Node['document']): string {
    const target = this.#documents.targetOf(reference, document);
    if (target === undefined || !this.#keys.has(target.file)) return reference;
    return target.words === undefined
      ? `${ROOT}#${target.fragment}`
      : this.#pointer(target.file, target.words);
  }
}

const CIRCULAR =
  'it refers to itself for the same value, so no check would end; it may refer to itself in its properties or items';

const EMPTY = 'a schema in it has no value; write {} for any value';

/** Limit on the schemas that are read for one: real ones have a few. */
const MAX_PARTS = 100;

const REFERENCES = ['$ref', '$dynamicRef', '$recursiveRef'] as const;

/** A schema that refers to others. */
const REFERS = /"\$(?:ref|dynamicRef|recursiveRef)":/;

/** A schema that others may refer to, which the engine keeps by its id. */
const IDENTIFIES = /"\$(?:id|anchor|dynamicAnchor|recursiveAnchor)":/;

function hasRequired(schema: unknown): schema is { required: unknown[] } {
  return isMapping(schema) && Array.isArray(schema.required);
}

/**
 * Converts the dialect of OpenAPI 3.0 to the current draft: `exclusiveMinimum: true` with a `minimum` becomes an exclusive
 * minimum, and a `nullable` without a `type` is dropped (OpenAPI 3.0.3 section 4.7.24).
 */
function modernise(schema: Record<string, unknown>): void {
  for (const [exclusive, bound] of BOUNDS) {
    if (typeof schema[exclusive] !== 'boolean') continue;
    if (schema[exclusive] && schema[bound] !== undefined) {
      schema[exclusive] = schema[bound];
      delete schema[bound];
    } else delete schema[exclusive];
  }
  if (typeof schema.nullable === 'boolean' && schema.type === undefined) delete schema.nullable;
}

const BOUNDS = [
  ['exclusiveMinimum', 'minimum'],
  ['exclusiveMaximum', 'maximum'],
] as const;
