import type { Awaitable } from '../domain/awaitable.ts';
import { Refusal } from '../domain/problems.ts';
import type { Reserve } from '../domain/settlement/settlement.ts';
import type { Exchange } from '../http/exchange.ts';
import { readWhole, wholeBodyTooLong } from '../http/message/whole-body.ts';
import { readJson } from '../operations/validation/json-text.ts';
import type { RequestContext } from './request-context.ts';

/**
 * Reads from the request's body how many points it reserves. The body is kept, to be forwarded as it is. A body that is not read, and one
 * that its upstream may read in another way, reserve the most, so that no client saves points by the form of its body.
 *
 * @returns the refusal of a body that breaks off, or turns out to be too long; undefined if the request may go on
 */
export function reserve(request: RequestContext<Exchange>): Awaitable<Refusal | undefined> {
  const { operation, source } = request;
  const setting = operation?.settlement?.reserve;
  if (setting === undefined || !source.hasBody) return undefined;
  const coding = source.field('content-encoding');
  const isEncoded = coding !== undefined && coding.toLowerCase() !== 'identity';
  if (isEncoded || Number(source.field('content-length') ?? 0) > setting.maxBodyBytes) {
    request.reserved = setting.most;
    return undefined;
  }
  if (source.body === undefined) return readReserved(request, setting);
  request.reserved = reservedBy(source.body, setting);
  return undefined;
}

async function readReserved(
  request: RequestContext<Exchange>,
  setting: Reserve,
): Promise<Refusal | undefined> {
  const { source } = request;
  const body = await readWhole(source.readBody(setting.maxBodyBytes), wholeBodyTooLong(setting.maxBodyBytes));
  if (body instanceof Refusal) return body;
  source.body = body;
  request.reserved = reservedBy(body, setting);
  return source.brokenBy;
}

/** @returns undefined for the cost of the operation */
function reservedBy(body: Buffer, setting: Reserve): number | undefined {
  if (body.length === 0) return undefined;
  const read = readJson(body);
  if ('problem' in read) return setting.most;
  if (setting.meanings === undefined) return statedIn(read.value, setting);
  let largest = 0;
  for (const { cost, settlement } of setting.meanings) {
    const own = settlement?.reserve;
    largest = Math.max(largest, (own && statedIn(read.value, own)) ?? cost);
  }
  return largest;
}

function statedIn(document: unknown, { json, most }: Reserve): number | undefined {
  const value = json.valueIn(document);
  return typeof value === 'number' && value > 0 ? Math.ceil(Math.min(value, most)) : undefined;
}
