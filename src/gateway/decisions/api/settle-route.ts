/** `POST /settle`: programs report what decisions that they hold have cost. */
import { type Static, Type } from 'typebox';
import { Compile } from 'typebox/schema';
import { withinMs } from '../../../domain/awaitable.ts';
import { US_PER_SECOND } from '../../../domain/clock.ts';
import { FieldErrors } from '../../../domain/field-errors.ts';
import { problemValue, Refusal } from '../../../domain/problems.ts';
import { readJson } from '../../../operations/validation/json-text.ts';
import { MAX_LIMIT, type Settled } from '../../../store/store.ts';
import type { PortRequest } from '../../entrance.ts';
import { bucketAnswer } from './decide-answer.ts';
import type { ProgramDependencies } from './decide-route.ts';
import type { HeldDecision } from './held-decisions.ts';
import { answerPosted, readPosted, takeOver } from './posted.ts';
import { addShapeErrors } from './question.ts';
import { LONGEST_RECEIPT, nameOf } from './receipt.ts';

/** Settlements in one request. */
const MAX_SETTLEMENTS = 100;

/** How long a program waits for the store. After that, the settlement is applied as soon as the store answers. */
const ANSWER_MS = 1_000;

const itemSchema = Type.Object(
  {
    receipt: Type.String({ minLength: 1, maxLength: LONGEST_RECEIPT }),
    cost: Type.Integer({ minimum: 0, maximum: MAX_LIMIT }),
  },
  { additionalProperties: false },
);

const item = Compile(itemSchema);
const batch = Compile(
  Type.Object(
    { settlements: Type.Array(Type.Unknown(), { minItems: 1, maxItems: MAX_SETTLEMENTS }) },
    { additionalProperties: false },
  ),
);

const UNKNOWN_RECEIPT = new Refusal('ValidationError', 'No replica of this fleet has issued the receipt.', {
  errors: [{ field: 'receipt', message: 'was not issued here' }],
});
const UNAVAILABLE = new Refusal(
  'ServiceUnavailable',
  'The key of receipts is unknown, because the store does not answer.',
);

const US_PER_MS = US_PER_SECOND / 1_000;

/**
 * Settles what a program reports. Items of a batch are settled separately.
 *
 * @returns why there is no answer
 */
export async function settleAsked(
  request: PortRequest,
  shared: ProgramDependencies,
): Promise<Refusal | 'answered'> {
  const body = await readPosted(request);
  if (body instanceof Refusal) return body;
  const read = readJson(body);
  if ('problem' in read) return new Refusal('BadRequest', `The body ${read.problem}.`);
  const { value } = read;
  if (typeof value !== 'object' || value === null || !('settlements' in value)) {
    const answer = await settleOne(value, request, shared);
    if (answer instanceof Refusal) return answer;
    answerPosted(request, answer);
    return 'answered';
  }
  if (!batch.Check(value)) {
    const message = `must be a list of 1 to ${MAX_SETTLEMENTS} settlements, and stand alone`;
    return invalid([{ field: 'settlements', message }]);
  }
  const { settlements } = value as { settlements: unknown[] };
  const answers = await Promise.all(settlements.map((one) => settleOne(one, request, shared)));
  const shown = answers.map((answer) =>
    answer instanceof Refusal ? failed(answer, request.requestId, shared.baseUrl) : answer,
  );
  answerPosted(request, { settlements: shown });
  return 'answered';
}

function invalid(errors: { readonly field: string; readonly message: string }[]): Refusal {
  return new Refusal('ValidationError', 'The body has settlements that cannot be applied.', { errors });
}

/** An item of a batch that cannot be settled. */
function failed(refusal: Refusal, requestId: string, baseUrl: string) {
  const reason = refusal === UNAVAILABLE ? 'unavailable' : 'invalid';
  return { settled: false, reason, buckets: [], problem: problemValue(refusal, requestId, baseUrl) };
}

async function settleOne(value: unknown, request: PortRequest, shared: ProgramDependencies) {
  if (!item.Check(value)) return invalid(problemsOf(value));
  const { receipt, cost } = value as Static<typeof itemSchema>;
  const received = await shared.receipts.read(receipt);
  if (received === 'unknown' || received === 'unavailable') {
    shared.observer.receipt(received === 'unknown' ? 'invalid' : received);
    return received === 'unknown' ? UNKNOWN_RECEIPT : UNAVAILABLE;
  }
  takeOver(request);
  const settled = await withinMs(applied(received, cost, shared), ANSWER_MS);
  shared.observer.receipt(settled?.outcome ?? 'pending');
  return answerOf(received, cost, settled);
}

/** Settles a decision, and counts what it has cost when the store has answered. */
async function applied(decision: HeldDecision, cost: number, { store, held }: ProgramDependencies) {
  const { charge, chargedAtUs, id } = decision;
  const endsAtUs = chargedAtUs + (charge.heldMs ?? 0) * US_PER_MS;
  const settled = await store.settle({
    charge,
    chargedAtUs,
    cost,
    refundsRequests: cost === 0,
    id,
    endsAtUs,
  });
  if (settled.outcome === 'settled') held.settled(decision, cost);
  return settled;
}

function problemsOf(value: unknown) {
  const errors = new FieldErrors();
  addShapeErrors(item.Errors(value)[1], (field, message) => errors.add(field || 'body', message));
  return [...errors.list];
}

/** docs/decide.openapi.yaml describes it. */
function answerOf({ charge }: HeldDecision, cost: number, settled: Settled | undefined) {
  if (settled === undefined || settled.outcome === 'dropped') {
    return { settled: false, reason: settled?.outcome ?? 'pending', buckets: [] };
  }
  const buckets = charge.buckets.flatMap((bucket, index) => {
    const state = settled.buckets[index];
    if (state === undefined || bucket.shadow === true) return [];
    return [bucketAnswer(nameOf(bucket), bucket, state)];
  });
  if (settled.outcome === 'settled') return { settled: true, cost, buckets };
  // Nobody settled it in time, so it costs what was reserved.
  const kept = settled.outcome === 'ended' ? { cost: charge.cost } : {};
  return { settled: false, reason: settled.outcome, ...kept, buckets };
}
