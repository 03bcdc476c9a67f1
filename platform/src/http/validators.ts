import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';
import addFormats from 'ajv-formats';
import type { FastifyInstance } from 'fastify';

// Unknown members are refused by name, never removed silently, and all errors are reported together.
const OPTIONS = { useDefaults: true, allErrors: true, strict: false };
/** Parameters and headers arrive as text, so "25" is a valid integer. A member of a JSON body has a type of its own. */
const ofText = withFormats(new Ajv({ ...OPTIONS, coerceTypes: true }));
const ofJson = withFormats(new Ajv(OPTIONS));
/** Stops at the first error. */
const ofLongJson = withFormats(new Ajv({ ...OPTIONS, allErrors: false }));

/** For a body with more values only the first error is reported: each value can have one. */
const MAX_VALUES = 2_000;
/** Deeper values would overflow the stack, here or in PostgreSQL. */
const MAX_DEPTH = 100;

/** By the text of their schema, with `body` or another part of the request before it. */
const shared = new Map<string, () => ValidateFunction>();

/**
 * Validates requests. Schemas are compiled on first use and shared by all operations of the process with the same schema, because
 * compiling all of them at start-up takes a second.
 */
export function useSharedValidators(app: FastifyInstance): void {
  app.setValidatorCompiler(({ schema, httpPart = '' }) => {
    const isBody = httpPart === 'body';
    const text = JSON.stringify(schema);
    const compiled = (ajv: Ajv, key: string) => {
      const compile = shared.get(key) ?? once(() => ajv.compile(schema));
      shared.set(key, compile);
      return compile;
    };
    const short = compiled(isBody ? ofJson : ofText, httpPart + text);
    const long = isBody ? compiled(ofLongJson, `long ${httpPart}${text}`) : short;
    return (data: unknown) => {
      const size = measure(data);
      if (size === undefined) return { error: [TOO_DEEP] };
      const validate = size > MAX_VALUES ? long() : short();
      return validate(data) ? storable(data) : { error: validate.errors ?? [] };
    };
  });
}

function storable(value: unknown): { readonly value: unknown } | { readonly error: ErrorObject[] } {
  const path = findUnstorable(value);
  return path === undefined ? { value } : { error: [{ ...UNSTORABLE, instancePath: pointerOf(path) }] };
}

function withFormats(ajv: Ajv): Ajv {
  addFormats.default(ajv);
  return ajv;
}

const UNSTORABLE = {
  keyword: 'storable',
  schemaPath: '',
  params: {},
  message:
    'holds what cannot be stored: NUL, half of a surrogate pair, or a byte order mark as its first character',
};

const TOO_DEEP = {
  keyword: 'depth',
  schemaPath: '',
  instancePath: '',
  params: {},
  message: `is nested more than ${MAX_DEPTH} levels deep`,
};

/** The number of values within a value. Undefined if it is nested too deeply. */
function measure(value: unknown, depth = 0): number | undefined {
  if (typeof value !== 'object' || value === null) return 1;
  if (depth === MAX_DEPTH) return undefined;
  let size = 1;
  for (const member of Object.values(value)) {
    const within = measure(member, depth + 1);
    if (within === undefined) return undefined;
    size += within;
  }
  return size;
}

/** The path, last name first, to the first text that a database cannot store. */
function findUnstorable(value: unknown): string[] | undefined {
  if (typeof value === 'string') return isStorable(value) ? undefined : [];
  if (typeof value !== 'object' || value === null) return undefined;
  for (const [name, member] of Object.entries(value)) {
    const found = findUnstorable(member);
    if (found === undefined) continue;
    found.push(name);
    return found;
  }
  return undefined;
}

function pointerOf(path: readonly string[]): string {
  const names = path.toReversed().map((name) => name.replaceAll('~', '~0').replaceAll('/', '~1'));
  return names.map((name) => `/${name}`).join('');
}

/** PostgreSQL stores neither NUL nor a surrogate without its other half. PGlite loses a byte order mark when it reads a text that begins with one. */
function isStorable(text: string): boolean {
  return !text.includes('\0') && !text.startsWith('\ufeff') && !/\p{Surrogate}/u.test(text);
}

function once<Value extends object>(make: () => Value): () => Value {
  let value: Value | undefined;
  return () => {
    value ??= make();
    return value;
  };
}
