import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Awaitable } from '../domain/awaitable.ts';
import { FieldErrors } from '../domain/field-errors.ts';
import { type BodyRules, checkBody, planBody } from '../validation/body.ts';
import { checkHeaders } from '../validation/headers.ts';
import { checkPath } from '../validation/path.ts';
import { checkQuery } from '../validation/query.ts';
import { wholeBodyOf } from './edge/request.ts';
import { brokenBy } from './http/broken.ts';
import { isContinueExpected } from './http/inspect.ts';
import { Refusal } from './problems.ts';
import type { Operation, Target } from './request-context.ts';

/** A refusal, the body if it was read for validation, or undefined if it is still to be streamed. */
export type Validated = Refusal | Buffer | undefined;

/**
 * Validates a request against its operation's document. A 422 lists every invalid parameter (contract section 4.1 rules 2
 * and 3). This comes after the charge, because a request that fails validation has spent its points (8.1 rule 4). The body is
 * read only if the document asks for it and all parameters are valid.
 */
export function validate(
  operation: Operation,
  target: Target,
  response: ServerResponse,
): Awaitable<Validated> {
  const { rules } = operation;
  if (rules === undefined) return undefined;
  const request = response.req;
  const errors = new FieldErrors();
  checkPath(rules.path, target.path, errors);
  checkQuery(rules.query, target.search, errors);
  checkHeaders(rules.headers, request.headers, errors);
  if (!errors.isEmpty) return invalid(errors, 'The request has invalid parameters.');
  return rules.body === undefined ? undefined : validateBody(rules.body, request, response, errors);
}

async function validateBody(
  rules: BodyRules,
  request: IncomingMessage,
  response: ServerResponse,
  errors: FieldErrors,
): Promise<Validated> {
  const plan = planBody(rules, request.headers, errors);
  if (!errors.isEmpty) return invalid(errors, 'The body is not what the operation takes.');
  if (plan.kind === 'too-large') return tooLarge(rules);
  if (plan.kind !== 'read') return undefined;
  if (isContinueExpected(request)) response.writeContinue();
  const body = wholeBodyOf(request) ?? (await readBody(request, rules.maxBytes));
  if (body === 'too large') return tooLarge(rules);
  if (body === 'broken off') return brokenBy(request) ?? BROKE_OFF;
  checkBody(plan.rule, body, errors);
  return errors.isEmpty ? body : invalid(errors, 'The body has invalid fields.');
}

const BROKE_OFF = new Refusal('BadRequest', 'The request was aborted.', { closes: true });

/** Reads the whole body, up to the bound. */
function readBody(request: IncomingMessage, maxBytes: number): Promise<Buffer | 'too large' | 'broken off'> {
  return new Promise((resolve) => {
    if (request.destroyed || brokenBy(request) !== undefined) resolve('broken off');
    const chunks: Buffer[] = [];
    let bytes = 0;
    request
      .on('data', (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes <= maxBytes) chunks.push(chunk);
        else resolve('too large');
      })
      .on('end', () => resolve(Buffer.concat(chunks)))
      .on('error', () => resolve('broken off'))
      .on('broken', () => resolve('broken off'))
      .on('close', () => resolve('broken off'));
  });
}

function invalid(errors: FieldErrors, detail: string): Refusal {
  return new Refusal('ValidationError', detail, { errors: errors.list });
}

function tooLarge({ maxBytes }: BodyRules): Refusal {
  return new Refusal('PayloadTooLarge', `The body of this operation may have ${maxBytes} bytes at most.`, {
    closes: true,
  });
}
