import { Ajv, type ValidateFunction } from 'ajv';
import addFormats from 'ajv-formats';
import type { FastifyInstance } from 'fastify';

/**
 * Validates requests with one compiled schema for each that differs, compiled when it is first needed: most operations
 * share theirs, and a start that compiles all of them takes a second longer.
 */
export function useSharedValidators(app: FastifyInstance): void {
  // An unknown member is refused by name, never silently removed; every fault is reported at once.
  const ajv = new Ajv({ coerceTypes: true, useDefaults: true, allErrors: true, strict: false });
  addFormats.default(ajv);
  const shared = new Map<string, () => ValidateFunction>();
  app.setValidatorCompiler(({ schema }) => {
    const key = JSON.stringify(schema);
    const compile = shared.get(key) ?? once(() => ajv.compile(schema));
    shared.set(key, compile);
    return (data: unknown) => {
      const validate = compile();
      return validate(data) ? { value: data } : { error: validate.errors ?? [] };
    };
  });
}

function once<Value extends object>(make: () => Value): () => Value {
  let value: Value | undefined;
  return () => {
    value ??= make();
    return value;
  };
}
