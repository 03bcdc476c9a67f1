import { type Json, type OperationSpec, refTo } from './files.ts';

const IS_WRITE = { get: false, post: true, patch: true, delete: true } as const;

interface Refusal {
  /** Its name in `components.responses`. */
  readonly name: string;
  /** Default: the name. */
  readonly code?: string;
  readonly description: string;
}

/** Every refusal that an operation may meet, by status (contract section 7). */
const REFUSALS: Readonly<Record<number, Refusal>> = {
  400: { name: 'BadRequest', description: 'The request is not one that HTTP or JSON allows.' },
  401: { name: 'Unauthenticated', description: 'The token is missing, unknown, expired or revoked.' },
  403: {
    name: 'Forbidden',
    description: 'The caller may not act for that Account, or may only read the resource.',
  },
  404: {
    name: 'ResourceNotFound',
    description: 'The resource does not exist, or the caller does not see it.',
  },
  408: {
    name: 'RequestTimeout',
    code: 'BadRequest',
    description: 'The request took too long to arrive.',
  },
  413: { name: 'PayloadTooLarge', description: 'The body is too large.' },
  422: {
    name: 'ValidationError',
    description: 'Parameters or members are not valid; `errors` names each of them.',
  },
  429: {
    name: 'RateLimitExceeded',
    description: 'The request rate is too high. Nothing was changed, and the Idempotency-Key was not used.',
  },
  431: { name: 'HeaderTooLarge', code: 'BadRequest', description: 'The request header is too long.' },
  503: { name: 'ServiceUnavailable', description: 'The service has a problem.' },
};

/** Refusals that any request may meet. */
const ALWAYS = [400, 408, 431, 503];

/** References to the refusals with these statuses. */
function refusalRefs(statuses: readonly number[]): Json {
  const ordered = [...new Set(statuses)].sort((a, b) => a - b);
  return Object.fromEntries(
    ordered.map((status) => [status, refTo('responses', REFUSALS[status]?.name ?? '')]),
  );
}

/** One operation of `paths`. */
export function toOperation(spec: OperationSpec): Json {
  if (spec.publicType !== undefined) return publicOperation(spec, spec.publicType);
  const isWrite = IS_WRITE[spec.method];
  const parameters = [
    'targetAccount',
    ...(isWrite ? ['idempotencyKey'] : []),
    ...[...spec.path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name),
    ...(spec.query ?? []),
  ];
  return {
    operationId: spec.id,
    tags: [spec.tag],
    summary: spec.summary,
    'x-weir': { cost: spec.cost ?? 1, personOnly: spec.personOnly ?? false },
    parameters: parameters.map((name) => refTo('parameters', name)),
    ...(spec.body && {
      requestBody: { required: !spec.isBodyOptional, content: contentOf(spec.body, spec.body) },
    }),
    responses: {
      [spec.status ?? 200]: answerOf(spec, isWrite),
      ...refusalRefs(refusalsOf(spec)),
    },
  };
}

/** Served to anybody for free, and the same for everybody. */
function publicOperation({ id, tag, summary }: OperationSpec, type: string): Json {
  const content = { [type]: { schema: { type: type === 'application/yaml' ? 'object' : 'string' } } };
  return {
    operationId: id,
    tags: [tag],
    summary,
    security: [],
    'x-weir': { cost: 0 },
    responses: {
      200: { description: 'The file.', headers: { 'X-Request-Id': refTo('headers', 'RequestId') }, content },
      // The gateway refuses query parameters.
      ...refusalRefs([...ALWAYS, 422]),
    },
  };
}

function refusalsOf({ path, method, refusals = [], query = [] }: OperationSpec): number[] {
  // A write that declares no body may be sent `{}`, and thus too many bytes.
  const own = [
    ...(path.includes('{') || query.includes('resultSetId') ? [404] : []),
    ...(IS_WRITE[method] ? [413] : []),
  ];
  return [...ALWAYS, 401, 403, 422, 429, ...own, ...refusals];
}

/** Schemas of answers that show a secret. */
const SECRETS = new Set(['CreatedApiKey', 'CreatedWebhookSubscription']);

function answerOf({ answer, list, status }: OperationSpec, isWrite: boolean): Json {
  const headers = {
    ...headerRefs(),
    ...(isWrite && { 'Idempotency-Replayed': refTo('headers', 'IdempotencyReplayed') }),
    ...(answer !== undefined && SECRETS.has(answer) && { 'Cache-Control': refTo('headers', 'NoStore') }),
  };
  if (list)
    return {
      description: 'One page of the list.',
      headers,
      content: contentOf(`${list}List`, `${list}List`),
    };
  if (!answer) return { description: 'Done.', headers };
  const description = status === 202 ? 'Accepted.' : status === 201 ? 'Created.' : 'As asked for.';
  return { description, headers, content: contentOf(answer, answer) };
}

function contentOf(schema: string, example: string): Json {
  return {
    'application/json': {
      schema: refTo('schemas', schema),
      examples: { example: refTo('examples', example) },
    },
  };
}

function headerRefs(): Json {
  return {
    'RateLimit-Policy': refTo('headers', 'RateLimitPolicy'),
    RateLimit: refTo('headers', 'RateLimit'),
    'Service-RateLimit-Mode': refTo('headers', 'ServiceRateLimitMode'),
    'X-Request-Id': refTo('headers', 'RequestId'),
  };
}

/** `components.responses`: one for each refusal. */
export function refusalResponses(): Json {
  return Object.fromEntries(
    Object.entries(REFUSALS).map(([status, { name, code = name, description }]) => [
      name,
      {
        description,
        headers: refusalHeaders(Number(status)),
        content: {
          'application/problem+json': {
            schema: refTo('schemas', 'Problem'),
            examples: { example: { value: problemExample(Number(status), code) } },
          },
        },
      },
    ]),
  );
}

/** What is refused before it is counted has no RateLimit fields. */
function refusalHeaders(status: number): Json {
  const requestId = { 'X-Request-Id': refTo('headers', 'RequestId') };
  if (status === 429) return { ...headerRefs(), 'Retry-After': refTo('headers', 'RetryAfter') };
  return [404, 413, 422].includes(status) ? headerRefs() : requestId;
}

function problemExample(status: number, code: string): Json {
  const title = code.replaceAll(/(?<=[a-z])(?=[A-Z])/g, ' ');
  const errors = [{ field: 'page[size]', message: 'must be <= 100' }];
  const extensions = { bucket: 'account-read', limit: 500, windowSeconds: 1, costPoints: 1 };
  return {
    type: `https://api.example.com/errors/${title.replaceAll(' ', '-').toLowerCase()}`,
    title,
    status,
    detail: `${title}.`,
    code,
    requestId: '0b7f2a52-7e5f-4f0e-9c43-6a1d2f3b4c5d',
    extensions: status === 429 ? extensions : {},
    ...(status === 422 && { errors }),
  };
}
