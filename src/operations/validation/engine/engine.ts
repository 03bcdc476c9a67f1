import { Ajv, type KeywordCxt, type Options, str } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import type { ErrorLog } from './error-log.ts';
import type { Meter } from './meter.ts';
import { compilePattern } from './patterns.ts';

/** A custom keyword that is added next to every reference. It counts the references followed for one value. */
export const STEP = 'x-weir-step';

const OPTIONS: Options = {
  // Real documents contain unknown keywords and formats. They are ignored.
  strict: false,
  validateSchema: false,
  logger: false,
  // A larger schema is compiled once, and not again wherever a reference leads to it.
  inlineRefs: 50,
  // In Unicode mode an unnecessary escape is an error, and most patterns are not written for it.
  unicodeRegExp: false,
};

/** The JSON Schema dialect: OpenAPI 3.0 has its own, 3.1 uses draft 2020-12. */
export type Dialect = 'openapi-3.0' | '2020-12';

/** The code with which Ajv adds an error. It offers no callback for it. */
const ADDED = /vErrors\.push\((err\d+)\);\}errors\+\+;/g;

/** The code that asks whether an object has a property. No name that every object inherits is longer. */
const HAS = /\b(data\d{0,6})\.(\w{1,24}) ([!=])== undefined/g;

/**
 * Creates a validator that runs in linear time: patterns do not backtrack, `uniqueItems` reads each item once, and the
 * meter aborts validation that goes through the branches of a schema too often.
 *
 * @param log collects all errors; undefined if the first is enough
 */
export function createEngine(dialect: Dialect, log: ErrorLog | undefined, meter: Meter): Ajv {
  const regExp = Object.assign((source: string) => compilePattern(source, meter), { code: 'compilePattern' });
  const process = (source: string): string =>
    source.replaceAll(ADDED, `$&scope${counter.scopePath}.fail($1);`).replaceAll(HAS, ownOf);
  const options = { ...OPTIONS, allErrors: log !== undefined, code: { regExp, process } };
  const engine: Ajv = dialect === 'openapi-3.0' ? new Ajv(options) : new Ajv2020(options);
  const counter = engine.scope.value('func', { ref: log ?? meter });
  if (log === undefined) dropErrorsOfItems(engine);
  else log.watch(engine);
  addFormats.default(engine);
  // The regular expression of ajv-formats takes quadratic time.
  engine.addFormat('url', isUrl);
  // To the regular expression of ajv-formats, one valid line of many suffices, and an empty one is valid.
  engine.addFormat('byte', isBase64);
  replaceKeywords(engine, meter);
  engine.addKeyword({
    keyword: STEP,
    schemaType: 'boolean',
    errors: false,
    before: dialect === 'openapi-3.0' ? '$ref' : '$dynamicRef',
    validate() {
      meter.step();
      return true;
    },
  });
  return engine;
}

/** Names such as `constructor` count only where an object has them itself. Ajv has an option for it, which makes all names slow. */
function ownOf(asked: string, data: string, name: string, sign: string): string {
  return name in Object.prototype ? `${sign === '=' ? '!' : ''}Object.hasOwn(${data}, '${name}')` : asked;
}

/** Replaces the keywords of Ajv that take too long or are wrong for some values. */
function replaceKeywords(engine: Ajv, meter: Meter): void {
  engine.removeKeyword('uniqueItems');
  engine.addKeyword({
    keyword: 'uniqueItems',
    type: 'array',
    schemaType: 'boolean',
    validate: (isAsked: boolean, items: readonly unknown[]) =>
      !isAsked || meter.valueNumbers.areUnique(items),
    error: { message: 'must not have the same item twice' },
  });
  engine.removeKeyword('multipleOf');
  engine.addKeyword({
    keyword: 'multipleOf',
    type: 'number',
    schemaType: 'number',
    validate: isMultipleOf,
    error: { message: ({ schemaCode }) => str`must be multiple of ${schemaCode}` },
  });
}

/**
 * The relative error of a quotient of two decimal numbers: each of them is rounded to a double by half an epsilon at most, and so
 * is the quotient.
 */
const QUOTIENT_ERROR = 2 * Number.EPSILON;

/**
 * Whether a number is a multiple, as far as doubles can say. 19.99 / 0.01 is 1998.9999999999998, so Ajv's own comparison refuses
 * valid amounts. Its option `multipleOfPrecision` allows the same error for every quotient, but the error grows with the quotient. An
 * error that admits large amounts would also admit 19.9900001.
 */
function isMultipleOf(divisor: number, value: number): boolean {
  const quotient = value / divisor;
  return Math.abs(quotient - Math.round(quotient)) <= QUOTIENT_ERROR * Math.abs(quotient);
}

/** Keeps no errors of the items that `contains` does not find. */
function dropErrorsOfItems(engine: Ajv): void {
  const definition = engine.getKeyword('contains');
  if (typeof definition !== 'object' || !('code' in definition)) throw new Error('Ajv has no contains');
  const original = definition.code;
  definition.code = (context: KeywordCxt, ruleType?: string) => {
    const subschema = context.subschema.bind(context);
    context.subschema = (application, valid) => {
      const within = subschema(application, valid);
      context.reset();
      return within;
    };
    original(context, ruleType);
  };
}

/** Base64 with padding (RFC 4648 section 4), in one line or several. */
function isBase64(text: string): boolean {
  const line = text.replaceAll(/[\r\n]/g, '');
  return line.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(line);
}

function isUrl(text: string): boolean {
  return /^(?:https?|ftp):\/\/\S+$/i.test(text) && URL.canParse(text);
}
