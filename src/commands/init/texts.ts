import { costliestByRow } from '../../config/checks/costs.ts';
import { CONTRACT_ROWS, contractRows } from '../../domain/limits/rows.ts';
import { KINDS_BY_METHOD, type ListedOperation } from '../../operations/listed-operation.ts';

/** A request to try. */
export type Example = ReturnType<typeof exampleOf>;

/** The limits have a window of a minute, so that a person can reach one. */
const WINDOW_SECONDS = 60;
const EXAMPLE_REQUESTS = 5;

/** A read without parameters, if there is one; undefined if there is no operation. */
export function exampleOperation(operations: readonly ListedOperation[]): ListedOperation | undefined {
  const reads = operations.filter(({ method, access }) => method === 'GET' && access === 'caller');
  return reads.find(isPlain) ?? reads[0] ?? operations[0];
}

/** A path of an operation with a value for each parameter. */
export function concrete(path: string): string {
  return path.replace(/\{[^{}]*\}/g, '1');
}

export function exampleOf(operations: readonly ListedOperation[]) {
  const operation = exampleOperation(operations);
  const { method, path, cost } = operation ?? { method: 'GET', path: '/', cost: 1 };
  const kind = operation?.kind ?? KINDS_BY_METHOD.GET;
  const limit = Math.max(EXAMPLE_REQUESTS * cost, costliest(operations, `account-${kind}`));
  const requests = Math.floor(limit / cost) + 1;
  return {
    method,
    path: concrete(path),
    /** The points of its kind that the example Account has. */
    limit,
    /** How many of these requests it takes until one is refused. */
    requests,
  };
}

function isPlain({ path, rules }: ListedOperation): boolean {
  const isRequired = [...(rules?.query.byName.values() ?? [])].some((one) => one.isRequired);
  return !path.includes('{') && !isRequired && !rules?.headers.some((one) => one.isRequired);
}

function costliest(operations: readonly ListedOperation[], bucket: string): number {
  return costliestByRow(operations, contractRows(WINDOW_SECONDS)).get(bucket)?.cost ?? 1;
}

/**
 * @param document the OpenAPI document; undefined if the API has none
 * @param basePath instead of the paths of the document's `servers`
 */
export function settingsText(document: string | undefined, upstream: string, basePath?: string): string {
  return `# Process settings. A change takes a restart; \`weir check\` reports every problem.
# All settings: docs/configuration.md.

# Prefix of the \`type\` URI in the bodies of 401, 404, 429 and other refusals.
baseUrl: http://127.0.0.1:8080

# Clients connect here. The host 0.0.0.0 accepts connections from other machines.
listen: { host: 127.0.0.1, port: 8080 }

# Metrics and health: http://127.0.0.1:9090/metrics
admin: { host: 127.0.0.1, port: 9090 }

# The API behind the gateway.
upstream: { url: ${JSON.stringify(upstream)} }

# To share counts between several gateways, use Redis: { kind: redis, url: "redis://127.0.0.1:6379" }
store: { kind: memory }

# How callers are authenticated: by the tokens in a file. docs/identity.md describes JWT, introspection and API keys.
identity: { kind: static, file: identities.yaml }

${document === undefined ? LIST : operationsText(document, basePath)}

# Points per window. Reloaded when the file changes.
limits: { file: limits.yaml }
`;
}

const LIST = `# Every request costs 1 point, unless the list has another cost for it:
#   list: [{ method: POST, path: /reports, cost: 5 }]
# An OpenAPI document can have the costs instead. Requests are then validated as well: { openapi: openapi.yaml }
operations: { list: [], unlisted: charge }`;

function operationsText(document: string, basePath: string | undefined): string {
  return `# Operations and their costs. \`unlisted: charge\` forwards requests that the document does not describe, for 1 point;
# \`reject\` answers 404. \`undeclaredQuery: forward\` lets query parameters pass that the document does not declare, such as
# ?utm_source=x; \`reject\` answers 422. Declared parameters are validated in both cases, unless the document has
# \`x-weir: { validate: false }\`.
operations:
  openapi: ${JSON.stringify(document)}
  unlisted: charge
  undeclaredQuery: forward${basePath === undefined ? '' : `\n  basePath: ${JSON.stringify(basePath)}`}`;
}

export function limitsText(operations: readonly ListedOperation[], example: Example): string {
  const defaults = CONTRACT_ROWS.map(({ name, fallback }) => {
    return `  ${name}: ${Math.max(fallback, 10 * costliest(operations, name))}`;
  });
  return `# Points that each Account, Person, Organization and client address may use in any window. GET, HEAD and QUERY use the
# read limits, other methods the write limits. Reloaded when this file changes.
windowSeconds: ${WINDOW_SECONDS}

defaults:
${defaults.join('\n')}

# Further limits, each with a window of its own. A request is admitted if all of its limits have room.
# limits:
#   account-minute: { per: account, points: 10000, window: 1m }

# Limits of single Accounts. This one is so low that a few requests reach it.
accounts:
  acct_example: { account-read: ${example.limit}, account-write: ${Math.max(example.limit, costliest(operations, 'account-write'))} }
`;
}

export function identitiesText(token: string): string {
  return `# Who may call. Reloaded when this file changes.

# The principal of each bearer token. \`sha256:<hex digest>\` instead of a token keeps it secret.
tokens:
  ${token}: svc_example

# A principal has an Account, which pays for its requests, and may act for others: actsFor: [acct_2].
principals:
  svc_example: { type: ServiceAccount, account: acct_example }

# Every Account, and the Organization whose limits it shares.
accounts:
  acct_example: { organization: org_example }
`;
}
