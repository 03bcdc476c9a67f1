/** `POST /decide`: programs ask in JSON whether requests may pass. */
import { randomBytes, randomUUID } from 'node:crypto';
import type { PortTokenSettings } from '../../../config/settings/port-token.ts';
import { type Awaitable, andThen } from '../../../domain/awaitable.ts';
import { addressIn } from '../../../domain/network.ts';
import { Refusal } from '../../../domain/problems.ts';
import { CHARGE_STAGES, MATCH_STAGES, runStages, type Stage } from '../../../stages/decide.ts';
import { RequestContext } from '../../../stages/request-context.ts';
import { finishRequest, type PortDependencies, type PortRequest } from '../../entrance.ts';
import { ABANDONED, type AskedRequest, AskedSource, aim, refuseAsked } from './asked-request.ts';
import { answerOf } from './decide-answer.ts';
import { type HeldDecisions, heldDecision } from './held-decisions.ts';
import { answerPosted, readPosted, takeOver } from './posted.ts';
import { type Question, readQuestions } from './question.ts';
import type { Receipts } from './receipt.ts';

/** What the stages of the port for decisions share with the answers to programs. */
export interface ProgramDependencies extends PortDependencies {
  /** The token of the port. */
  readonly settings: PortTokenSettings;
  readonly receipts: Receipts;
  readonly held: HeldDecisions;
}

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
  shared: ProgramDependencies,
): Promise<Refusal | 'answered'> {
  const body = await readPosted(request);
  if (body instanceof Refusal) return body;
  const questions = readQuestions(body);
  if (questions instanceof Refusal) return questions;
  if (!mayName && questions.list.some(namesMore)) return NEEDS_TOKEN;
  if (request.source.isAbandoned) return ABANDONED;
  takeOver(request);
  const { list, isBatch } = questions;
  // A hold that nobody could settle takes no slots.
  const canHold = list.some(({ hold }) => hold !== undefined) && (await shared.receipts.canWrite());
  const asked = await Promise.all(
    list.map((one) => {
      const source = new AskedSource(one, request, canHold);
      return decideOne(one, source, isBatch ? randomUUID() : request.requestId, shared);
    }),
  );
  const answers = asked.map((one) => ({ ...answerOf(one, shared.baseUrl), ...receiptMember(one, shared) }));
  answerPosted(request, isBatch ? { decisions: answers } : answers[0]);
  return 'answered';
}

const ID_BYTES = 12;

/** The receipt of a decision that was to be held; null if there is nothing to settle. */
function receiptMember(asked: AskedRequest, { receipts, held, observer }: ProgramDependencies) {
  if (!asked.source.isToBeHeld) return {};
  const decision = heldDecision(asked, randomBytes(ID_BYTES).toString('base64url'));
  if (decision === undefined) {
    if (asked.decision?.outcome !== 'denied') observer.receipt('none');
    return { receipt: null };
  }
  observer.receipt('issued');
  held.begun(decision);
  return { receipt: receipts.write(decision) };
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

/** @param requestId the program's own, unless it asks more than one question */
function decideOne(
  question: Question,
  source: AskedSource,
  requestId: string,
  shared: PortDependencies,
): Awaitable<AskedRequest> {
  const { outer } = source;
  const asked = new RequestContext(source, question.method ?? '', question.path ?? '');
  asked.protocol = 'decide';
  asked.requestId = requestId;
  asked.startedMs = performance.now();
  asked.traceparent = outer.traceparent;
  // Without a port, which would be an address of its own for limits and blocks.
  asked.clientAddress = addressIn(question.address ?? '') ?? outer.clientAddress;
  const { principal } = source;
  const known =
    principal === undefined ? undefined : { identities: { principalOf: () => principal }, credentials: [] };
  const aimed = aim(asked, question, shared.operations, shared.upstream.pathProfile);
  return andThen(aimed ?? runStages(STAGES, asked, { ...shared, ...known }), (refusal) => {
    asked.refusal = refusal;
    // A peek is no request: it is neither counted nor logged.
    if (!source.isPeek) finishRequest(asked, refusal?.status ?? 200, shared);
    return asked;
  });
}
