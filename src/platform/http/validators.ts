import { Ajv, type ValidateFunction } from 'ajv';
import addFormats from 'ajv-formats';
import type { FastifyInstance } from 'fastify';

/**
 * Validates requests. Schemas are compiled on first use and shared by all operations with the same schema, because
 * compiling all of them at start-up takes a second.
 */
export function useSharedValidators(app: FastifyInstance): void {
  // Unknown members are refused by name, never removed silently, and all errors are reported together.
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
