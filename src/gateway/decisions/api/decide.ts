/** `POST /decide`: programs ask in JSON whether requests may pass. */
import { type Awaitable, andThen } from '../../../domain/awaitable.ts';
import { Refusal } from '../../../domain/problems.ts';
import { FieldLines } from '../../../http/message/head/field-lines.ts';
import { readWhole } from '../../../stages/body.ts';
import { decide } from '../../../stages/decide.ts';
import type { Exchange } from '../../../stages/exchange.ts';
import { costIn } from '../../../store/store.ts';
import { finishRequest } from '../../begin-request.ts';
import type { PortDependencies } from '../../port.ts';
import { answerOf } from './answer.ts';
import { AskedRequest } from './asked-request.ts';
import { type Question, type Questions, readQuestions } from './question.ts';

const MAX_BODY_BYTES = 1_048_576;

const NOT_POST = new Refusal('MethodNotAllowed', 'Programs ask for decisions with POST.', {
  headers: { Allow: 'POST' },
});
const TOO_LONG = new Refusal('PayloadTooLarge', `The body may have ${MAX_BODY_BYTES} bytes at most.`, {
  closes: true,
});
const NEEDS_TOKEN = new Refusal(
  'Forbidden',
  'Only the token of decisions.tokenFile entitles a program to name an Account or a cost, or to choose limits.',
);

/**
 * Answers the questions of a program.
 *
 * @param mayName whether it may name Accounts, costs and limits
 * @returns why there is no answer; undefined once it has been given
 */
export async function decideAsked(
  exchange: Exchange,
  mayName: boolean,
  shared: PortDependencies,
): Promise<Refusal | undefined> {
  if (exchange.head.method !== 'POST') return NOT_POST;
  const body = exchange.body ?? (await readWhole(exchange.readBody(MAX_BODY_BYTES), TOO_LONG));
  if (body instanceof Refusal) return body;
  const questions = readQuestions(body);
  if (questions instanceof Refusal) return questions;
  if (!mayName && questions.list.some(namesMore)) return NEEDS_TOKEN;
  const { list, isBatch } = questions;
  const asked = await Promise.all(list.map((one) => decideOne(one, exchange, !isBatch, shared)));
  if (exchange.isAbandoned) exchange.abort();
  else send(exchange, asked, questions, shared.baseUrl);
  return undefined;
}

/** Whether a question decides for itself who pays, or how much. */
function namesMore({ account, cost, limits }: Question): boolean {
  return account !== undefined || cost !== undefined || limits !== undefined;
}

function decideOne(
  question: Question,
  exchange: Exchange,
  isAlone: boolean,
  shared: PortDependencies,
): Awaitable<AskedRequest> {
  const asked = new AskedRequest(question, exchange, isAlone, shared.buckets);
  const { principal } = asked;
  const known =
    principal === undefined ? undefined : { identities: { principalOf: () => principal }, credentials: [] };
  const aimed = asked.aimAt(shared.operations, shared.upstream.pathProfile);
  return andThen(aimed ?? decide(asked, { ...shared, ...known }), (decided) => {
    const refusal = decided && (whyNever(asked) ?? decided);
    asked.refusal = refusal;
    // A peek is no request: it is neither counted nor logged.
    if (!asked.isPeek) finishRequest(asked, refusal?.status ?? 200, shared);
    return asked;
  });
}

/** A cost above a limit would be refused again and again; nothing was spent on it. */
function whyNever({ due, askedCost = 0 }: AskedRequest): Refusal | undefined {
  const bucket = due?.buckets.find((one) => one.shadow !== true && one.limit < costIn(one, askedCost));
  if (bucket === undefined) return undefined;
  return new Refusal('ValidationError', 'The cost can never be admitted.', {
    errors: [
      { field: 'cost', message: `is above the limit of ${bucket.name}, which is ${bucket.limit} points` },
    ],
  });
}

function send(
  exchange: Exchange,
  asked: readonly AskedRequest[],
  { isBatch }: Questions,
  baseUrl: string,
): void {
  const answers = asked.map((one) => answerOf(one, baseUrl));
  const text = JSON.stringify(isBatch ? { decisions: answers } : answers[0]);
  const length = `${Buffer.byteLength(text)}`;
  const fields = ['X-Request-Id', exchange.requestId, 'Content-Type', 'application/json'];
  fields.push('Content-Length', length, 'Cache-Control', 'no-store');
  // Each of its decisions has been counted and logged.
  exchange.onClosed = undefined;
  exchange.begin(200, FieldLines.of(fields));
  exchange.endThisTurn({ text, encoding: 'utf8' });
}
