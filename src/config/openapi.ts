import type { PricedOperation } from './costs.ts';
import { ConfigError, formatPath, type Problem } from './problem.ts';
import { readYaml } from './reader/yaml-text.ts';

/** One operation of an OpenAPI document with its price. */
export interface ListedOperation extends PricedOperation {
  /** Upper case. */
  readonly method: string;
  /** As the document writes it, such as `/v3/payments/payables/{payableId}/open`. */
  readonly path: string;
}

/** The methods that OpenAPI can describe and that spend points, with the buckets they spend from (contract 8.1). */
const KINDS = {
  get: 'read',
  head: 'read',
  post: 'write',
  put: 'write',
  patch: 'write',
  delete: 'write',
} as const;

const DEFAULT_COST = 1;
/** Contract 8.1 rule 3: "up to 10 points". */
const MAX_COST = 10;

type Report = (path: readonly string[], message: string) => void;

/** The price list of an OpenAPI 3 document: its operations and their `x-weir`. Throws a ConfigError with every problem. */
export function parseOperations(text: string, file: string): readonly ListedOperation[] {
  const document = readYaml(text, file);
  if ('message' in document) throw new ConfigError([document]);
  const problems: Problem[] = [];
  const operations = operationsOf(document.value, (path, message) => {
    const line = document.lineOf(path);
    problems.push({ source: file, ...(line === undefined ? {} : { line }), path: formatPath(path), message });
  });
  if (problems.length > 0) throw new ConfigError(problems);
  return operations;
}

function operationsOf(content: unknown, report: Report): ListedOperation[] {
  const { openapi, paths } = isRecord(content) ? content : {};
  if (typeof openapi !== 'string' || !openapi.startsWith('3.')) {
    report(['openapi'], 'this is not an OpenAPI 3 document');
    return [];
  }
  if (!isRecord(paths)) {
    report(['paths'], 'the document lists no paths');
    return [];
  }
  return Object.entries(paths).flatMap(([path, item]) =>
    isRecord(item) ? operationsAt(path, item, report) : [],
  );
}

function operationsAt(path: string, item: Record<string, unknown>, report: Report): ListedOperation[] {
  return Object.entries(KINDS).flatMap(([word, kind]) => {
    const operation = item[word];
    if (!isRecord(operation)) return [];
    const method = word.toUpperCase();
    const { operationId } = operation;
    const id = typeof operationId === 'string' ? operationId : `${method} ${path}`;
    const price = priceOf(operation['x-weir'], (key, message) =>
      report(['paths', path, word, 'x-weir', ...key], message),
    );
    return [{ method, path, id, kind, ...price }];
  });
}

function priceOf(extension: unknown, report: Report): Pick<ListedOperation, 'cost' | 'personOnly'> {
  if (extension === undefined) return { cost: DEFAULT_COST, personOnly: false };
  if (!isRecord(extension)) {
    report([], 'must be a mapping such as {cost: 5}');
    return { cost: DEFAULT_COST, personOnly: false };
  }
  const { cost = DEFAULT_COST, personOnly = false, ...unknown } = extension;
  for (const key of Object.keys(unknown)) report([key], 'unknown key; known are cost and personOnly');
  const isPrice = typeof cost === 'number' && Number.isInteger(cost) && cost >= 1 && cost <= MAX_COST;
  if (!isPrice) report(['cost'], `must be a whole number from 1 to ${MAX_COST}`);
  if (typeof personOnly !== 'boolean') report(['personOnly'], 'must be true or false');
  return { cost: isPrice ? cost : DEFAULT_COST, personOnly: personOnly === true };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
