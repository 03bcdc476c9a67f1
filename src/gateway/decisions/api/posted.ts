import { Refusal } from '../../../domain/problems.ts';
import { FieldLines } from '../../../http/message/head/field-lines.ts';
import { readWhole } from '../../../http/message/whole-body.ts';
import type { PortRequest } from '../../entrance.ts';

const MAX_BODY_BYTES = 1_048_576;

const NOT_POST = new Refusal('MethodNotAllowed', 'Programs ask with POST.', { headers: { Allow: 'POST' } });
const TOO_LONG = new Refusal('PayloadTooLarge', `The body may have ${MAX_BODY_BYTES} bytes at most.`, {
  closes: true,
});

/** Reads the body that a program sends, or says why it cannot be read. */
export async function readPosted({ source }: PortRequest): Promise<Buffer | Refusal> {
  if (source.head.method !== 'POST') return NOT_POST;
  return source.body ?? (await readWhole(source.readBody(MAX_BODY_BYTES), TOO_LONG));
}

/** From now on, what a program asks for is counted and logged. Its own request is not, whatever becomes of it. */
export function takeOver({ source }: PortRequest): void {
  source.onClosed = undefined;
}

/** Answers a program, whose own request is neither counted nor logged. */
export function answerPosted(request: PortRequest, answer: unknown): void {
  const { source, requestId } = request;
  const text = JSON.stringify(answer);
  const length = `${Buffer.byteLength(text)}`;
  const fields = ['X-Request-Id', requestId, 'Content-Type', 'application/json'];
  fields.push('Content-Length', length, 'Cache-Control', 'no-store');
  if (!source.isAbandoned) takeOver(request);
  source.answer(200, FieldLines.of(fields), { text, encoding: 'utf8' });
}
