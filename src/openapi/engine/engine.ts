import { Ajv, type Options } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import type { Meter } from './meter.ts';
import { compilePattern } from './patterns.ts';

/** A keyword of ours beside every reference: true. It counts how many are followed for one value. */
export const STEP = 'x-weir-step';

const OPTIONS: Options = {
  // Documents are read as they are found in the wild: unknown keywords and formats constrain nothing.
  strict: false,
  validateSchema: false,
  logger: false,
  // Most patterns are written for engines without a Unicode mode, in which an unneeded escape is an error.
  unicodeRegExp: false,
};

/** Which JSON Schema a document is written in: OpenAPI 3.0 has a dialect of its own, 3.1 has the draft of 2020-12. */
export type Dialect = 'openapi-3.0' | '2020-12';

/**
 * A validator that needs linear time for every value: patterns do not backtrack, `uniqueItems` compares each item once, and
 * the meter ends what goes through the branches of a schema again and again.
 */
export function createEngine(dialect: Dialect, allErrors: boolean, meter: Meter): Ajv {
  const regExp = Object.assign((source: string) => compilePattern(source, meter), { code: 'compilePattern' });
  const options = { ...OPTIONS, allErrors, code: { regExp } };
  const engine = dialect === 'openapi-3.0' ? new Ajv(options) : new Ajv2020(options);
  addFormats.default(engine);
  // The expression of ajv-formats is quadratic.
  engine.addFormat('url', isUrl);
  engine.removeKeyword('uniqueItems');
  engine.addKeyword({
    keyword: 'uniqueItems',
    type: 'array',
    schemaType: 'boolean',
    validate: (isAsked: boolean, items: readonly unknown[]) => !isAsked || meter.identities.areUnique(items),
    error: { message: 'must not have the same item twice' },
  });
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

function isUrl(text: string): boolean {
  return /^(?:https?|ftp):\/\/\S+$/i.test(text) && URL.canParse(text);
}
