import { _, type Ajv, type ErrorObject, type KeywordCxt } from 'ajv';
import { FieldErrors } from '../../../domain/field-errors.ts';
import { addIssues, type Issue } from '../parameter-value.ts';
import { placeOf, toIssue } from './issue.ts';
import { TooComplex } from './meter.ts';

/** Thrown once no further error would be listed. */
export class EnoughErrors extends Error {}

/** Limit on errors found in one value, listed or not: per byte of the value, plus a minimum. */
const ERRORS_PER_BYTE = 0.5;
const MIN_ERRORS = 4_000;

/** Characters of a path that take as long to read as one error takes to create. */
const PATH_CHARACTERS = 64;

/** Keywords that may succeed although a schema within them fails. The errors of that schema are then dropped. */
const TENTATIVE = ['anyOf', 'oneOf', 'not', 'if', 'contains'];

/** Collects all errors of a value that would be listed, and ends the validation when the list is full. */
export class ErrorLog {
  #issues: Issue[] = [];
  #fields = new FieldErrors();
  /** Where errors were found, so that repeated errors of one field are read once. */
  readonly #seen = new Set<string>();
  #left = 0;
  /** Errors within tentative keywords, with the number of errors found before each enclosing keyword. */
  readonly #pending: ErrorObject[] = [];
  readonly #marks: number[] = [];

  /** Starts with a value of the given size. */
  begin(bytes: number): void {
    this.#issues = [];
    this.#fields = new FieldErrors();
    this.#seen.clear();
    this.#left = MIN_ERRORS + ERRORS_PER_BYTE * bytes;
    this.#pending.length = 0;
    this.#marks.length = 0;
  }

  /** The errors so far, without errors that may still be dropped. */
  get issues(): readonly Issue[] {
    return this.#issues;
  }

  /**
   * Adds an error. Throws EnoughErrors if the list is full or has taken too much work, and TooComplex if it has taken too much
   * work without a single error that is certain.
   */
  fail(error: ErrorObject): void {
    // Errors of `not` and of the condition of `if` have no content.
    this.#left -= 1 + (error.instancePath?.length ?? 0) / PATH_CHARACTERS;
    if (this.#left < 0) throw this.#issues.length > 0 ? new EnoughErrors() : new TooComplex();
    if (this.#marks.length > 0) this.#pending.push(error);
    else this.#settle(error);
  }

  /** Makes Ajv report the errors of tentative keywords as such. */
  watch(engine: Ajv): void {
    for (const keyword of TENTATIVE) {
      const definition = engine.getKeyword(keyword);
      if (typeof definition !== 'object' || !('code' in definition)) throw new Error(`no ${keyword}`);
      const original = definition.code;
      definition.code = (context: KeywordCxt, ruleType?: string) => {
        const { gen } = context;
        const log = gen.scopeValue('func', { ref: this });
        const depth = gen.const('depth', _`${log}.enter()`);
        const reset = context.reset.bind(context);
        context.reset = () => {
          reset();
          gen.code(_`${log}.drop(${depth})`);
        };
        original(context, ruleType);
        gen.code(_`${log}.leave(${depth})`);
      };
    }
  }

  /** Begins a tentative keyword. Returns its depth. */
  enter(): number {
    return this.#marks.push(this.#pending.length) - 1;
  }

  /** Drops the errors since the tentative keyword of this depth. */
  drop(depth: number): void {
    this.#pending.length = this.#marks[depth] ?? 0;
  }

  /** Ends the tentative keyword of this depth, and any within it that failed early. */
  leave(depth: number): void {
    this.#marks.length = depth;
    if (depth > 0) return;
    for (const error of this.#pending) this.#settle(error);
    this.#pending.length = 0;
  }

  #settle(error: ErrorObject): void {
    if (error.keyword === undefined) return;
    const place = placeOf(error);
    if (this.#seen.has(place)) return;
    this.#seen.add(place);
    const issue = toIssue(error);
    this.#issues.push(issue);
    addIssues('', [issue], this.#fields);
    if (this.#fields.isFull) throw new EnoughErrors();
  }
}
