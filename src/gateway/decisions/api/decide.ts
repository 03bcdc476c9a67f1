/** `POST /decide`: programs ask in JSON whether requests may pass. */
import { randomUUID } from 'node:crypto';
import { type Awaitable, andThen } from '../../../domain/awaitable.ts';
import { Refusal } from '../../../domain/problems.ts';
import { FieldLines } from '../../../http/message/head/field-lines.ts';
import { readWhole } from '../../../http/message/whole-body.ts';
import { CHARGE_STAGES, MATCH_STAGES, runStages, type Stage } from '../../../stages/decide.ts';
import { RequestContext } from '../../../stages/request-context.ts';
import { costIn } from '../../../store/store.ts';
import { finishRequest, type PortDependencies, type PortRequest } from '../../entrance.ts';
import { answerOf } from './answer.ts';
import { type AskedRequest, AskedSource, aim, refuseAsked } from './asked-request.ts';
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
 * @returns why there is no answer
 */
export async function decideAsked(
  request: PortRequest,
  mayName: boolean,
  shared: PortDependencies,
): Promise<Refusal | 'answered'> {
  const { source } = request;
  if (source.head.method !== 'POST') return NOT_POST;
  const body = source.body ?? (await readWhole(source.readBody(MAX_BODY_BYTES), TOO_LONG));
  if (body instanceof Refusal) return body;
  const questions = readQuestions(body);
  if (questions instanceof Refusal) return questions;
  if (!mayName && questions.list.some(namesMore)) return NEEDS_TOKEN;
  const { list, isBatch } = questions;
  const asked = await Promise.all(list.map((one) => decideOne(one, request, !isBatch, shared)));
  send(request, asked, questions, shared.baseUrl);
  return 'answered';
}

/** Whether a question decides for itself who pays, or how much. */
function namesMore({ account, cost, limits }: Question): boolean {
  return account !== undefined || cost !== undefined || limits !== undefined;
}

const STAGES: readonly Stage<AskedSource, PortDependencies>[] = [
  ...MATCH_STAGES,
  refuseAsked,
  ...CHARGE_STAGES,
];

/** @param isAlone whether it is the only question of the program's request, whose id it then has */
function decideOne(
  question: Question,
  outer: PortRequest,
  isAlone: boolean,
  shared: PortDependencies,
): Awaitable<AskedRequest> {
  const source = new AskedSource(question, outer);
  const asked = new RequestContext(source, question.method ?? '', question.path ?? '');
  asked.protocol = 'decide';
  asked.requestId = isAlone ? outer.requestId : randomUUID();
  asked.startedMs = performance.now();
  asked.traceparent = outer.traceparent;
  asked.clientAddress = question.address ?? outer.clientAddress;
  const { principal } = source;
  const known =
    principal === undefined ? undefined : { identities: { principalOf: () => principal }, credentials: [] };
  const aimed = aim(asked, question, shared.operations, shared.upstream.pathProfile);
  return andThen(aimed ?? runStages(STAGES, asked, { ...shared, ...known }), (decided) => {
    const refusal = decided && (whyNever(asked) ?? decided);
    asked.refusal = refusal;
    // A peek is no request: it is neither counted nor logged.
    if (!source.isPeek) finishRequest(asked, refusal?.status ?? 200, shared);
    return asked;
  });
}

/** A cost above a limit would be refused again and again; nothing was spent on it. */
function whyNever({ due, source: { askedCost = 0 } }: AskedRequest): Refusal | undefined {
  const bucket = due?.buckets.find((one) => one.shadow !== true && one.limit < costIn(one, askedCost));
  if (bucket === undefined) return undefined;
  return new Refusal('ValidationError', 'The cost can never be admitted.', {
    errors: [
      { field: 'cost', message: `is above the limit of ${bucket.name}, which is ${bucket.limit} points` },
    ],
  });
}

function send(
  { source, requestId }: PortRequest,
  asked: readonly AskedRequest[],
  { isBatch }: Questions,
  baseUrl: string,
): void {
  const answers = asked.map((one) => answerOf(one, baseUrl));
  const text = JSON.stringify(isBatch ? { decisions: answers } : answers[0]);
  const length = `${Buffer.byteLength(text)}`;
  const fields = ['X-Request-Id', requestId, 'Content-Type', 'application/json'];
  fields.push('Content-Length', length, 'Cache-Control', 'no-store');
  // Each of its decisions has been counted and logged.
  if (!source.isAbandoned) source.onClosed = undefined;
  source.answer(200, FieldLines.of(fields), { text, encoding: 'utf8' });
}
