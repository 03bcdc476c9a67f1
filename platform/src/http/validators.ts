import { Ajv, type ValidateFunction } from 'ajv';
import addFormats from 'ajv-formats';
import type { FastifyInstance } from 'fastify';

// Unknown members are refused by name, never removed silently, and all errors are reported together.
const OPTIONS = { useDefaults: true, allErrors: true, strict: false };
/** Parameters and headers arrive as text, so "25" is a valid integer. A member of a JSON body has a type of its own. */
const ofText = withFormats(new Ajv({ ...OPTIONS, coerceTypes: true }));
const ofJson = withFormats(new Ajv(OPTIONS));

/** By the text of their schema, with `body` or another part of the request before it. */
const shared = new Map<string, () => ValidateFunction>();

/**
 * Validates requests. Schemas are compiled on first use and shared by all operations of the process with the same schema, because
 * compiling all of them at start-up takes a second.
 */
export function useSharedValidators(app: FastifyInstance): void {
  app.setValidatorCompiler(({ schema, httpPart = '' }) => {
    const ajv = httpPart === 'body' ? ofJson : ofText;
    const key = httpPart + JSON.stringify(schema);
    const compile = shared.get(key) ?? once(() => ajv.compile(schema));
    shared.set(key, compile);
    return (data: unknown) => {
      const validate = compile();
      if (!validate(data)) return { error: validate.errors ?? [] };
      const instancePath = findUnstorable(data);
      return instancePath === undefined ? { value: data } : { error: [{ ...UNSTORABLE, instancePath }] };
    };
  });
}

function withFormats(ajv: Ajv): Ajv {
  addFormats.default(ajv);
  return ajv;
}

const UNSTORABLE = {
  ...{ keyword: 'storable', schemaPath: '', params: {} },
  message: 'holds a character that cannot be stored: NUL, or half of a surrogate pair',
};

/** The JSON pointer of the first text that PostgreSQL cannot store. */
function findUnstorable(value: unknown, pointer = ''): string | undefined {
  if (typeof value === 'string') return value.includes('\0') || !isWellFormed(value) ? pointer : undefined;
  if (typeof value !== 'object' || value === null) return undefined;
  for (const [name, member] of Object.entries(value)) {
    const found = findUnstorable(member, `${pointer}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Whether every surrogate is half of a pair. */
function isWellFormed(text: string): boolean {
  return !/\p{Surrogate}/u.test(text);
}

function once<Value extends object>(make: () => Value): () => Value {
  let value: Value | undefined;
  return () => {
    value ??= make();
    return value;
  };
}
