import fc from 'fast-check';
import { expect, it } from 'vitest';
import { fieldName } from '../../src/http/message/head/field-lines.ts';
import {
  GATEWAY_OWNED,
  HOP_BY_HOP,
  IDENTITY_FIELDS,
  isMisleading,
  NOT_NOMINATED,
} from '../../src/http/message/head/field-names.ts';
import { generatedCases } from '../fixtures/generated-cases.ts';
import { istioProvider } from '../fixtures/istio.ts';

const { includeRequestHeadersInCheck: patterns } = istioProvider();

/** Whether Istio sends a field of this name to Weir. */
function isSent(name: string): boolean {
  return patterns.some((pattern) => {
    if (pattern.endsWith('*')) return name.startsWith(pattern.slice(0, -1));
    return pattern.startsWith('*') ? name.endsWith(pattern.slice(1)) : name === pattern;
  });
}

const WORDS = [
  'x',
  'http',
  'method',
  'verb',
  'override',
  'overrides',
  'original',
  'orig',
  'uri',
  'url',
  'path',
  'info',
];
const MORE_WORDS = [
  'rewrite',
  'rewritten',
  'replaced',
  'unencoded',
  'request',
  'tunnel',
  'tunneled',
  'script',
  'name',
];
const made = fc
  .array(fc.constantFrom(...WORDS, ...MORE_WORDS), { minLength: 1, maxLength: 4 })
  .chain((words) => fc.constantFrom(...['-', '_', '.', ''].map((separator) => words.join(separator))));
const known = [
  ...GATEWAY_OWNED,
  ...HOP_BY_HOP,
  ...IDENTITY_FIELDS,
  ...NOT_NOMINATED,
  'content-length',
  'traceparent',
];
const respelt = fc
  .tuple(fc.constantFrom(...known), fc.constantFrom('_', '.'))
  .map(([name, separator]) => name.replaceAll('-', separator));

it('every field by which Weir refuses a request is in the list', () => {
  let refused = 0;
  fc.assert(
    fc.property(fc.oneof(made, respelt), (name) => {
      const isRefused = isMisleading(fieldName(name)) || fieldName(name).request === 'refuse';
      if (isRefused) refused++;
      return !isRefused || isSent(name);
    }),
    { numRuns: generatedCases(20_000) },
  );
  expect(refused).toBeGreaterThan(500);
});

it.each([
  ...[
    'authorization',
    'x-service-account',
    'x-request-id',
    'x-forwarded-for',
    'x-forwarded-proto',
    'x-api-key',
  ],
  ...['origin', 'access-control-request-method', 'traceparent', 'content-type', 'idempotency-key'],
])('%s is in the list', (name) => {
  expect(isSent(name)).toBe(true);
});

it.each(['connection', 'upgrade', 'transfer-encoding', 'te'])(
  '%s is not: it is of the connection between Envoy and Weir',
  (name) => {
    expect(isSent(name)).toBe(false);
  },
);
