import { type Static, Type } from 'typebox';
import { Compile } from 'typebox/schema';
import { ID_PATTERN } from '../../../domain/caller.ts';
import { parseDuration } from '../../../domain/duration.ts';
import { FieldErrors } from '../../../domain/field-errors.ts';
import { addressIn } from '../../../domain/network.ts';
import { Refusal } from '../../../domain/problems.ts';
import { readJson } from '../../../operations/validation/json-text.ts';
import { MOST_HELD_MS } from '../../../store/store.ts';

/** Questions in one request. */
const MAX_QUESTIONS = 100;

/** More than any request has. */
const MAX_LIMITS = 32;

const MAX_COST = 1_000_000;

const id = Type.String({ pattern: ID_PATTERN });
const text = (maxLength: number) => Type.String({ minLength: 1, maxLength });

const questionSchema = Type.Object(
  {
    token: Type.Optional(text(16_384)),
    // Whatever the client has sent: what names no Account is refused as foreign.
    serviceAccount: Type.Optional(Type.String({ maxLength: 16_384 })),
    account: Type.Optional(id),
    principal: Type.Optional(id),
    address: Type.Optional(text(64)),
    operation: Type.Optional(text(1_000)),
    method: Type.Optional(text(32)),
    path: Type.Optional(text(16_384)),
    cost: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_COST })),
    limits: Type.Optional(Type.Array(text(64), { minItems: 1, maxItems: MAX_LIMITS })),
    peek: Type.Optional(Type.Boolean()),
    hold: Type.Optional(text(16)),
  },
  { additionalProperties: false },
);

/** Whether a request may pass: who sends it, and what it asks for. docs/decide.openapi.yaml describes it. */
export type Question = Static<typeof questionSchema>;

const batch = Compile(
  Type.Object(
    { decisions: Type.Array(Type.Unknown(), { minItems: 1, maxItems: MAX_QUESTIONS }) },
    { additionalProperties: false },
  ),
);
const question = Compile(questionSchema);

/**
 * Reads the body of a request, or says what is wrong with it. Nothing is charged unless all of it can be answered. The questions of a batch
 * came as `decisions`, and are answered so.
 */
export function readQuestions(
  body: Buffer,
): { readonly list: readonly Question[]; readonly isBatch: boolean } | Refusal {
  const read = readJson(body);
  if ('problem' in read) return new Refusal('BadRequest', `The body ${read.problem}.`);
  const { value } = read;
  const errors = new FieldErrors();
  const isBatch = typeof value === 'object' && value !== null && 'decisions' in value;
  if (isBatch && !batch.Check(value)) {
    errors.add('decisions', `must be a list of 1 to ${MAX_QUESTIONS} questions, and stand alone`);
  } else {
    const list: readonly unknown[] = isBatch ? (value as { decisions: unknown[] }).decisions : [value];
    list.forEach((one, index) => {
      checkQuestion(one, isBatch ? `decisions[${index}]` : '', errors);
    });
    if (errors.isEmpty) return { list: list as readonly Question[], isBatch };
  }
  return new Refusal('ValidationError', 'The body has questions that cannot be answered.', {
    errors: errors.list,
  });
}

function checkQuestion(value: unknown, prefix: string, errors: FieldErrors): void {
  const add: Add = (field, message) =>
    errors.add([prefix, field].filter((part) => part !== '').join('.') || 'body', message);
  if (!question.Check(value)) {
    addShapeErrors(question.Errors(value)[1], add);
    return;
  }
  checkSender(value as Question, add);
  checkOperation(value as Question, add);
  checkHold(value as Question, add);
}

type Add = (field: string, message: string) => void;

/** What a schema finds wrong with a value. Members are named as they are written; only `limits` has items. */
export function addShapeErrors(
  found: readonly { readonly instancePath: string; readonly message: string; readonly keyword: string }[],
  add: Add,
): void {
  for (const { instancePath, message, keyword } of found) {
    const pointer = instancePath.slice(1).replace(/\/(\d+)$/, '[$1]');
    const field = pointer.replaceAll('~1', '/').replaceAll('~0', '~');
    // The schema of a member that is not one of them is false.
    if (keyword === 'boolean') add(field, 'is not known');
    else if (keyword !== 'additionalProperties') add(field, message);
  }
}

function checkSender({ token, serviceAccount, account, principal, address }: Question, add: Add): void {
  if ([token, account, address].filter((one) => one !== undefined).length > 1) {
    add('', 'must name one of token, account and address');
  }
  if (principal !== undefined && account === undefined) add('principal', 'needs an account beside it');
  if (serviceAccount !== undefined && account !== undefined)
    add('serviceAccount', 'cannot stand beside an account');
  if (address !== undefined && addressIn(address) === undefined) add('address', 'must be an IP address');
}

function checkOperation({ operation, method, path }: Question, add: Add): void {
  const isTarget = method !== undefined && path !== undefined;
  const isPart = method !== undefined || path !== undefined;
  if (operation === undefined ? !isTarget : isPart) {
    add('', 'must name either an operation, or a method and a path');
  }
}

const MS_PER_SECOND = 1_000;

/** For how long a decision is held; undefined if it is not, or if the text is no such time. */
export function heldMsOf({ hold }: Question): number | undefined {
  const heldMs = MS_PER_SECOND * ((hold === undefined ? undefined : parseDuration(hold)) ?? 0);
  return heldMs >= 1 && heldMs <= MOST_HELD_MS ? heldMs : undefined;
}

function checkHold(question: Question, add: Add): void {
  if (question.hold === undefined) return;
  if (heldMsOf(question) === undefined) add('hold', 'must be a time from 1s to 10m, such as 60s');
  if (question.peek === true) add('hold', 'cannot be asked for with peek');
}
