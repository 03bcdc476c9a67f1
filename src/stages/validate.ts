import type { Awaitable } from '../domain/awaitable.ts';
import { FieldErrors } from '../domain/field-errors.ts';
import { Refusal } from '../domain/problems.ts';
import type { Exchange } from '../http/exchange.ts';
import { readWhole, wholeBodyTooLong } from '../http/message/whole-body.ts';
import { type BodyRules, checkBody, planBody } from '../operations/validation/body.ts';
import { checkHeaders, checkPath } from '../operations/validation/path-and-headers.ts';
import { checkQuery } from '../operations/validation/query.ts';
import type { Operation, Target } from './request-context.ts';

/** The head and the body. The body is kept once it has been read. */
type Message = Pick<Exchange, 'head' | 'body' | 'readBody'>;

/**
 * Validates a request against its operation's document. A 422 lists every invalid parameter (contract section 4.1 rules 2
 * and 3). This comes after the charge, because a request that fails validation has spent its points (8.1 rule 4). The body is
 * read only if the document asks for it and all parameters are valid.
 *
 * @returns why the request is invalid; undefined if it is valid
 */
export function validate(
  { rules }: Operation,
  target: Target,
  message: Message,
): Awaitable<Refusal | undefined> {
  if (rules === undefined) return undefined;
  const errors = new FieldErrors();
  checkPath(rules.path, target.path, errors);
  checkQuery(rules.query, target.search, errors);
  checkHeaders(rules.headers, message.head, errors);
  if (!errors.isEmpty) return invalid(errors, 'The request has invalid parameters.');
  return rules.body === undefined ? undefined : validateBody(rules.body, message, errors);
}

async function validateBody(
  rules: BodyRules,
  message: Message,
  errors: FieldErrors,
): Promise<Refusal | undefined> {
  const plan = planBody(rules, message.head, errors);
  if (!errors.isEmpty)
    return invalid(errors, 'The body is missing, or not of a type that the operation accepts.');
  if (plan.kind === 'too-large') return wholeBodyTooLong(rules.maxBytes);
  if (plan.kind !== 'read') return undefined;
  const body =
    message.body ?? (await readWhole(message.readBody(rules.maxBytes), wholeBodyTooLong(rules.maxBytes)));
  if (body instanceof Refusal) return body;
  message.body = body;
  checkBody(plan.rule, body, errors);
  return errors.isEmpty ? undefined : invalid(errors, 'The body has invalid fields.');
}

function invalid(errors: FieldErrors, detail: string): Refusal {
  return new Refusal('ValidationError', detail, { errors: errors.list });
}
