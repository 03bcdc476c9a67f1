import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { CORE_SCHEMA, load } from 'js-yaml';

type Json = { readonly [key: string]: unknown };

const METHODS = ['get', 'post', 'put', 'patch', 'delete'] as const;

/** One operation of openapi.yaml with its schemas in the form that Fastify compiles. */
export interface ContractOperation {
  readonly operationId: string;
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** In Fastify's notation: `/v3/payments/payables/:payableId/open`. */
  readonly url: string;
  /** Whether its answer shows a secret, so that nothing may store it. */
  readonly showsSecret: boolean;
  readonly schema: {
    readonly params?: Json;
    readonly querystring: Json;
    readonly headers?: Json;
    readonly body?: Json;
  };
}

const DOCUMENT = fileURLToPath(new URL('../../openapi.yaml', import.meta.url));

/** For writes that declare no body. Many clients send `{}` or `null`, which are allowed. Members are refused, as in declared bodies. */
export const NO_BODY = { type: ['object', 'null'], additionalProperties: false };

/** openapi.yaml, once it is parsed: it does not change while the process runs. */
let contract: Json | undefined;

/** Reads openapi.yaml, which ships with this code; the gateway prices and validates with the same file. */
export function loadContract(): ContractOperation[] {
  contract ??= load(readFileSync(DOCUMENT, 'utf8'), { schema: CORE_SCHEMA }) as Json;
  const document = contract;
  return Object.entries(document.paths as Json).flatMap(([path, item]) =>
    METHODS.flatMap((method) => {
      const operation = (item as Json)[method] as Json | undefined;
      // Operations without a caller, such as this document, are served elsewhere.
      if (!operation || isPublic(operation)) return [];
      const parameters = [...listOf((item as Json).parameters), ...listOf(operation.parameters)];
      const schema = toSchema(
        parameters.map((parameter) => resolve(document, parameter) as Json),
        resolve(document, operation.requestBody ?? {}) as Json,
      );
      return {
        operationId: String(operation.operationId),
        method: method.toUpperCase() as ContractOperation['method'],
        url: path.replaceAll(/\{(\w+)\}/g, ':$1'),
        showsSecret: JSON.stringify(operation.responses).includes('#/components/headers/NoStore'),
        schema: method === 'get' ? schema : { body: NO_BODY, ...schema },
      };
    }),
  );
}

function isPublic({ security }: Json): boolean {
  return Array.isArray(security) && security.length === 0;
}

function toSchema(parameters: readonly Json[], requestBody: Json): ContractOperation['schema'] {
  const content = requestBody.content as { 'application/json'?: { schema?: Json } } | undefined;
  const body = content?.['application/json']?.schema;
  const inside = (place: string) => parameters.filter((parameter) => parameter.in === place);
  return {
    params: objectSchema(inside('path'), false),
    // Contract section 4.1 rule 2: unknown query parameters are rejected, not ignored.
    querystring: objectSchema(inside('query'), false),
    headers: objectSchema(
      inside('header').map((parameter) => ({ ...parameter, name: String(parameter.name).toLowerCase() })),
      true,
    ),
    ...(body && { body: requestBody.required === true ? body : { ...body, type: ['object', 'null'] } }),
  };
}

function objectSchema(parameters: readonly Json[], isOpen: boolean): Json {
  return {
    type: 'object',
    additionalProperties: isOpen,
    properties: Object.fromEntries(parameters.map((parameter) => [parameter.name, parameter.schema])),
    required: parameters.filter((parameter) => parameter.required === true).map(({ name }) => name),
  };
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** The value with every `#/…` reference replaced by its target, and `x-default` as the `default` that is filled in. */
function resolve(document: Json, value: unknown): unknown {
  if (Array.isArray(value)) return value.map((entry) => resolve(document, entry));
  if (typeof value !== 'object' || value === null) return value;
  const reference = (value as Json).$ref;
  if (typeof reference === 'string') {
    const target = pointerWords(reference).reduce<unknown>(
      (node, key) => (node as Json | undefined)?.[key],
      document,
    );
    if (target === undefined) throw new Error(`openapi.yaml: ${reference} points at nothing.`);
    return resolve(document, target);
  }
  const { 'x-default': fallback, ...members } = value as Json;
  return Object.fromEntries([
    ...Object.entries(members).map(([key, entry]) => [key, resolve(document, entry)]),
    ...(fallback === undefined ? [] : [['default', fallback]]),
  ]);
}

/** The tokens of `#/…` (RFC 6901). */
function pointerWords(reference: string): readonly string[] {
  const [, ...words] = reference.split('/');
  return words.map((word) => word.replaceAll('~1', '/').replaceAll('~0', '~'));
}
