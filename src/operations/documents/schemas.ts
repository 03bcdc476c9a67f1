import type { AnySchema } from 'ajv';
import { isMapping } from '../../config/reader/schema-node.ts';
import { type Dialect, STEP } from '../validation/engine/engine.ts';
import { PatternError } from '../validation/engine/patterns.ts';
import type { Check } from '../validation/parameter-value.ts';
import { Compiler, type Reports, sharedCompiler } from './compiler.ts';
import { type Documents, type Node, selfOf } from './documents.ts';
import { resolveReference } from './references.ts';

/** The reason why a schema cannot be compiled. */
export interface SchemaError {
  readonly reason: string;
  /** The pattern that cannot be used, if that is the reason. */
  readonly pattern?: string;
}

/** OpenAPI 3.0 differs from JSON Schema in some keywords. */
const OLD: Dialect = 'openapi-3.0';

/** Id of the schema that contains all files of a description, each under the key `file:<number>`. */
const ROOT = 'weir://description';

/** Compiles the schemas of one description. Each schema is compiled once, even if it is used often. */
export class Schemas {
  readonly #dialect: Dialect;
  readonly #keys: ReadonlyMap<string, string>;
  /** The `$self` of each file. */
  readonly #selves: ReadonlyMap<string, unknown>;
  /** Of schemas that refer to others. */
  readonly #compiler: Compiler;
  /** What was compiled, by the schemas in the documents. Many operations may share a schema. */
  readonly #byValue = {
    first: new Map<unknown, Check | SchemaError>(),
    all: new Map<unknown, Check | SchemaError>(),
  };
  /** Copies of what is in the documents. What has several aliases is copied once. */
  readonly #copies = new Map<unknown, unknown>();

  constructor(documents: Documents, dialect: Dialect) {
    this.#dialect = dialect;
    const all = documents.all();
    this.#keys = new Map(all.map(({ file }, index) => [file, `file:${index}`]));
    this.#selves = new Map(all.map(({ file, value }) => [file, selfOf(value)]));
    const root = Object.fromEntries(
      all.map(({ file, value }) => [this.#keys.get(file), this.#translated(value, file)]),
    );
    this.#compiler = new Compiler(dialect, [root, ROOT]);
  }

  /** Compiles a check that reports the first issue, or all issues. */
  compile(node: Node, reports: Reports = 'first'): Check | SchemaError {
    const known = this.#byValue[reports].get(node.value);
    if (known !== undefined) return known;
    const check = this.#compile(node, reports);
    if (typeof node.value === 'object') this.#byValue[reports].set(node.value, check);
    return check;
  }

  #compile({ value, document: { file }, path }: Node, reports: Reports): Check | SchemaError {
    const text = JSON.stringify(value) ?? '';
    const [compiler, schema] = REFERS.test(text)
      ? [this.#compiler, { $ref: this.#pointer(file, path) }]
      : [
          IDENTIFIES.test(text) ? this.#compiler : sharedCompiler(this.#dialect),
          this.#translated(value, file),
        ];
    const check = compiler.compile(schema as AnySchema, reports);
    if (!(check instanceof Error)) return check;
    if (check instanceof PatternError) return { reason: check.message, pattern: check.pattern };
    return { reason: this.#withFiles(check.message) };
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
  #translated(value: unknown, file: string): unknown {
    if (typeof value !== 'object' || value === null) return value;
    const known = this.#copies.get(value);
    if (known !== undefined) return known;
    const copy = isMapping(value)
      ? this.#translatedMapping(value, file)
      : Object.values(value).map((item) => this.#translated(item, file));
    this.#copies.set(value, copy);
    return copy;
  }

  #translatedMapping(value: Readonly<Record<string, unknown>>, file: string): object {
    const { $ref } = value;
    // OpenAPI 3.0 ignores siblings of a $ref (section 4.7.23).
    if (typeof $ref === 'string' && this.#dialect === OLD)
      return { $ref: this.#reference($ref, file), [STEP]: true };
    const copy: Record<string, unknown> = {};
    for (const [key, one] of Object.entries(value)) copy[key] = this.#translated(one, file);
    if (typeof $ref === 'string') copy.$ref = this.#reference($ref, file);
    if (REFERENCES.some((key) => typeof value[key] === 'string')) copy[STEP] = true;
    // Some real documents have an empty `enum` that is not meant to reject every value.
    if (Array.isArray(copy.enum) && copy.enum.length === 0) delete copy.enum;
    dropReadOnly(copy);
    if (this.#dialect === OLD) modernise(copy);
    return copy;
  }

  #reference(reference: string, file: string): string {
    const target = resolveReference(reference, file, this.#selves.get(file));
    if (target === undefined || !this.#keys.has(target.file)) return reference;
    return target.words === undefined
      ? `${ROOT}#${target.fragment}`
      : this.#pointer(target.file, target.words);
  }
}

const REFERENCES = ['$ref', '$dynamicRef', '$recursiveRef'] as const;

/** A schema that refers to others. */
const REFERS = /"\$(?:ref|dynamicRef|recursiveRef)":/;

/** A schema that others may refer to, which the engine keeps by its id. */
const IDENTIFIES = /"\$(?:id|anchor|dynamicAnchor|recursiveAnchor)":/;

/** A required `readOnly` property is required only in responses (OpenAPI 3.0.3 section 4.7.24.2). */
function dropReadOnly(schema: Record<string, unknown>): void {
  const { required, properties } = schema;
  if (!Array.isArray(required) || !isMapping(properties)) return;
  schema.required = required.filter((name) => {
    const property = properties[name];
    return !(isMapping(property) && property.readOnly === true);
  });
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
