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

/** Answers a program. Its own request is neither counted nor logged: what it asked for has been. */
export function answerPosted({ source, requestId }: PortRequest, answer: unknown): void {
  const text = JSON.stringify(answer);
  const length = `${Buffer.byteLength(text)}`;
  const fields = ['X-Request-Id', requestId, 'Content-Type', 'application/json'];
  fields.push('Content-Length', length, 'Cache-Control', 'no-store');
  if (!source.isAbandoned) source.onClosed = undefined;
  source.answer(200, FieldLines.of(fields), { text, encoding: 'utf8' });
}
