import type { Ajv, AnySchema, ValidateFunction } from 'ajv';
import { createEngine, type Dialect } from '../validation/engine/engine.ts';
import { EnoughErrors, ErrorLog } from '../validation/engine/error-log.ts';
import { toIssue } from '../validation/engine/issue.ts';
import { Meter, TooComplex } from '../validation/engine/meter.ts';
import { type Check, type Issue, TOO_COMPLEX } from '../validation/parameter-value.ts';

/** Whether a check stops at the first issue. */
export type Reports = 'first' | 'all';

/** Compiles schemas, each of them once. */
export class Compiler {
  readonly #dialect: Dialect;
  readonly #root: readonly [schema: object, id: string] | undefined;
  readonly #compiled = new Map<string, Check | Error>();
  #characters = 0;
  readonly #meter = new Meter();
  readonly #log = new ErrorLog();
  #first: Ajv | undefined;
  #all: Ajv | undefined;

  /** @param root what `$ref`s lead into, and its id */
  constructor(dialect: Dialect, root?: readonly [schema: object, id: string]) {
    this.#dialect = dialect;
    this.#root = root;
  }

  /** Of the schemas that it keeps. */
  get characters(): number {
    return this.#characters;
  }

  /** @returns the check, or why the schema cannot be compiled, which is a PatternError if a pattern is the reason */
  compile(schema: AnySchema, reports: Reports): Check | Error {
    const key = `${reports} ${JSON.stringify(schema)}`;
    let check = this.#compiled.get(key);
    if (check === undefined) {
      check = this.#compile(schema, reports);
      this.#compiled.set(key, check);
      this.#characters += key.length;
    }
    return check;
  }

  #compile(schema: AnySchema, reports: Reports): Check | Error {
    try {
      if (reports === 'first') {
        this.#first ??= this.#engine(undefined);
        return toCheck(this.#first.compile(schema), this.#meter);
      }
      this.#all ??= this.#engine(this.#log);
      return toCheckOfAll(this.#all.compile(schema), this.#meter, this.#log);
    } catch (error) {
      return error instanceof Error ? error : new Error(String(error));
    }
  }

  #engine(log: ErrorLog | undefined): Ajv {
    const engine = createEngine(this.#dialect, log, this.#meter);
    if (this.#root !== undefined) engine.addSchema(...this.#root);
    return engine;
  }
}

/** Beyond this, schemas of documents that are no longer used are forgotten, with all others. */
const MAX_SHARED_CHARACTERS = 2_000_000;

const shared = new Map<Dialect, Compiler>();

/** Compiles schemas without references. A document that is read again, after a change, compiles only those that have changed. */
export function sharedCompiler(dialect: Dialect): Compiler {
  let compiler = shared.get(dialect);
  if (compiler === undefined || compiler.characters > MAX_SHARED_CHARACTERS) {
    compiler = new Compiler(dialect);
    shared.set(dialect, compiler);
  }
  return compiler;
}

/** Reports the first issue. */
function toCheck(validate: ValidateFunction, meter: Meter): Check {
  return (value, bytes = MAX_PARAMETER_BYTES) => {
    meter.begin(bytes);
    try {
      return validate(value) ? undefined : issuesOf(validate);
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
      if (validate(value)) return undefined;
      // Ajv does not add the error of a schema that is `false` as a whole: it assigns it.
      return log.issues.length > 0 ? log.issues : issuesOf(validate);
    } catch (error) {
      return error instanceof EnoughErrors ? log.issues : tooComplex(error);
    }
  };
}

function issuesOf({ errors }: ValidateFunction): readonly Issue[] {
  return (errors ?? []).map(toIssue);
}

function tooComplex(error: unknown): readonly Issue[] {
  // A RangeError is a stack overflow: the value is nested too deeply.
  if (error instanceof TooComplex || error instanceof RangeError) return TOO_COMPLEX;
  throw error;
}

/** Upper bound for the size of a parameter: Node limits headers and request target to less. */
const MAX_PARAMETER_BYTES = 16_384;
