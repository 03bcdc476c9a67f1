import type { Ajv, AnySchema, ValidateFunction } from 'ajv';
import { isMapping } from '../../config/reader/schema-node.ts';
import { createEngine, STEP } from '../validation/engine/engine.ts';
import { EnoughErrors, ErrorLog } from '../validation/engine/error-log.ts';
import { toIssue } from '../validation/engine/issue.ts';
import { Meter, TooComplex } from '../validation/engine/meter.ts';
import { PatternError } from '../validation/engine/patterns.ts';
import { type Check, type Issue, TOO_COMPLEX } from '../validation/parameter-value.ts';
import { type Documents, type Node, selfOf } from './documents.ts';
import { resolveReference } from './references.ts';

/** The reason why a schema cannot be compiled. */
export interface SchemaError {
  readonly reason: string;
  /** The pattern that cannot be used, if that is the reason. */
  readonly pattern?: string;
}

/** Id of the schema that contains all files of a description, each under the key `file:<number>`. */
const ROOT = 'weir://description';

/** Compiles the schemas of one description. Each schema is compiled once, even if it is used often. */
export class Schemas {
  readonly #isOldDialect: boolean;
  readonly #keys: ReadonlyMap<string, string>;
  readonly #root: object;
  /** The `$self` of each file. */
  readonly #selves: ReadonlyMap<string, unknown>;
  readonly #compiled = new Map<string, Check | SchemaError>();
  /** The same by the schemas in the documents. Many operations may share a schema. */
  readonly #byValue = {
    first: new Map<unknown, Check | SchemaError>(),
    all: new Map<unknown, Check | SchemaError>(),
  };
  /** Copies of what is in the documents. What has several aliases is copied once. */
  readonly #copies = new Map<unknown, unknown>();
  readonly #meter = new Meter();
  readonly #log = new ErrorLog();
  #first: Ajv | undefined;
  #all: Ajv | undefined;

  /** @param isOldDialect whether to use the JSON Schema dialect of OpenAPI 3.0 instead of draft 2020-12 */
  constructor(documents: Documents, isOldDialect: boolean) {
    this.#isOldDialect = isOldDialect;
    const all = documents.all();
    this.#keys = new Map(all.map(({ file }, index) => [file, `file:${index}`]));
    this.#selves = new Map(all.map(({ file, value }) => [file, selfOf(value)]));
    this.#root = Object.fromEntries(
      all.map(({ file, value }) => [this.#keys.get(file), this.#translated(value, file)]),
    );
  }

  /** Compiles a check that reports the first issue, or all issues. */
  compile(node: Node, reports: 'first' | 'all' = 'first'): Check | SchemaError {
    const known = this.#byValue[reports].get(node.value);
    if (known !== undefined) return known;
    const check = this.#compileText(node, reports);
    if (typeof node.value === 'object') this.#byValue[reports].set(node.value, check);
    return check;
  }

  #compileText(node: Node, reports: 'first' | 'all'): Check | SchemaError {
    const schema = isSelfContained(node.value)
      ? this.#translated(node.value, node.document.file)
      : { $ref: this.#pointer(node.document.file, node.path) };
    const key = `${reports} ${JSON.stringify(schema)}`;
    let check = this.#compiled.get(key);
    if (check === undefined) {
      check = this.#compile(schema as AnySchema, reports);
      this.#compiled.set(key, check);
    }
    return check;
  }

  #compile(schema: AnySchema, reports: 'first' | 'all'): Check | SchemaError {
    try {
      if (reports === 'first') {
        this.#first ??= this.#engine(undefined);
        return toCheck(this.#first.compile(schema), this.#meter);
      }
      this.#all ??= this.#engine(this.#log);
      return toCheckOfAll(this.#all.compile(schema), this.#meter, this.#log);
    } catch (error) {
      if (error instanceof PatternError) return { reason: error.message, pattern: error.pattern };
      return { reason: this.#withFiles(error instanceof Error ? error.message : String(error)) };
    }
  }

  /** A message in which addresses within the root schema are replaced by names of files. */
  #withFiles(message: string): string {
    return message.replace(/weir:\/\/description(?:#\/(file:\d+))?/g, (_, key: string | undefined) => {
      const found = [...this.#keys].find(([, one]) => one === key);
      return found === undefined ? 'the document' : `${found[0]}#`;
    });
  }

  #engine(log: ErrorLog | undefined): Ajv {
    const engine = createEngine(this.#isOldDialect ? 'openapi-3.0' : '2020-12', log, this.#meter);
    engine.addSchema(this.#root, ROOT);
    return engine;
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
    if (typeof $ref === 'string' && this.#isOldDialect)
      return { $ref: this.#reference($ref, file), [STEP]: true };
    const copy: Record<string, unknown> = {};
    for (const [key, one] of Object.entries(value)) copy[key] = this.#translated(one, file);
    if (typeof $ref === 'string') copy.$ref = this.#reference($ref, file);
    if (REFERENCES.some((key) => typeof value[key] === 'string')) copy[STEP] = true;
    // Some real documents have an empty `enum` that is not meant to reject every value.
    if (Array.isArray(copy.enum) && copy.enum.length === 0) delete copy.enum;
    dropReadOnly(copy);
    if (this.#isOldDialect) modernise(copy);
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

/** Reports the first issue. */
function toCheck(validate: ValidateFunction, meter: Meter): Check {
  return (value, bytes = MAX_PARAMETER_BYTES) => {
    meter.begin(bytes);
    try {
      return validate(value) ? undefined : (validate.errors ?? []).map(toIssue);
    } catch (error) {
      return tooComplex(error);
    }
  };
}

/** @param log collects the issues of the function */
function toCheckOfAll(validate: ValidateFunction, meter: Meter, log: ErrorLog): Check {
  return (value, bytes = MAX_PARAMETER_BYTES) => {
    meter.begin(bytes);
    log.begin(bytes);
    try {
      return validate(value) ? undefined : log.issues;
    } catch (error) {
      return error instanceof EnoughErrors ? log.issues : tooComplex(error);
    }
  };
}

function tooComplex(error: unknown): readonly Issue[] {
  // A RangeError is a stack overflow: the value is nested too deeply.
  if (error instanceof TooComplex || error instanceof RangeError) return TOO_COMPLEX;
  throw error;
}

/** Upper bound for the size of a parameter: Node limits headers and request target to less. */
const MAX_PARAMETER_BYTES = 16_384;

function isSelfContained(schema: unknown): boolean {
  return !/"\$(?:ref|dynamicRef|recursiveRef)":/.test(JSON.stringify(schema) ?? '');
}

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
