import type { JsonPointer } from '../../domain/settlement/json-pointer.ts';
import {
  isRefunded,
  pointsOfBytes,
  pointsOfText,
  type Reading,
  type Settle,
  type SettleSource,
  type UnsettledReason,
} from '../../domain/settlement/settlement.ts';
import type { FieldSection } from '../../http/message/head/field-section.ts';
import type { ResponseHead } from '../../http/message/head/response-head.ts';
import { type CostReader, costAtAdmission, type RequestContext } from '../../stages/request-context.ts';
import { Decoder } from './decoder.ts';
import { EventStream } from './event-stream.ts';
import { type BodyReader, JsonBody, readingOf } from './json-body.ts';

/** Reads what a response has cost while it is relayed. Nothing waits for it. */
export interface ResponseCost extends CostReader {
  /** @param isWhole whether the chunk is the whole body, which ends the response: the client may have it before `onEnd` is called */
  onData(chunk: Buffer, isWhole: boolean): void;
  /** @param trailers undefined where there are none */
  onEnd(trailers: FieldSection | undefined): void;
}

/**
 * Begins to read what the response to a request has cost.
 *
 * @returns undefined if that is not settled by the response
 */
export function readCost(request: RequestContext, head: ResponseHead): ResponseCost | undefined {
  const { operation, charged } = request;
  const { settlement } = operation ?? {};
  if (settlement?.settle === undefined || charged?.outcome !== 'admitted') return undefined;
  if (isRefunded(settlement, head.status)) return undefined;
  const { settle } = settlement;
  const reader =
    settle.kind === 'most'
      ? new MostStated(settle, head.fields, costAtAdmission(request))
      : readerOf(settle, head.fields);
  request.responseCost = reader;
  return reader;
}

function readerOf(settle: SettleSource, fields: FieldSection): ResponseCost {
  if (settle.kind === 'bytes') return new CountedBytes(settle.bytes);
  if (settle.kind === 'header') return new StatedField(settle.header, fields);
  return new StatedMember(settle.json, fields);
}

/** The most that one of several sources states. Unless all of them do, it is a problem: they could have stated more. */
class MostStated implements ResponseCost {
  isEnded = false;
  readonly #readers: readonly ResponseCost[];
  readonly #least: number | undefined;

  /** @param reserved what it costs at least, if the rule keeps the reservation */
  constructor(
    { of, keepsReservation }: Extract<Settle, { readonly kind: 'most' }>,
    fields: FieldSection,
    reserved: number,
  ) {
    this.#readers = of.map((source) => readerOf(source, fields));
    this.#least = keepsReservation ? reserved : undefined;
  }

  onData(chunk: Buffer, isWhole: boolean): void {
    this.isEnded = isWhole;
    for (const reader of this.#readers) reader.onData(chunk, isWhole);
  }

  onEnd(trailers: FieldSection | undefined): void {
    this.isEnded = true;
    for (const reader of this.#readers) reader.onEnd(trailers);
  }

  async finish(): Promise<Reading> {
    const readings = await Promise.all(this.#readers.map((reader) => reader.finish()));
    let points = this.#least;
    let problem: UnsettledReason | undefined;
    for (const reading of readings) {
      if (reading.points !== undefined) points = Math.max(points ?? 0, reading.points);
      problem ??= reading.problem;
    }
    return { points, problem };
  }
}

class CountedBytes implements ResponseCost {
  isEnded = false;
  readonly #bytesPerPoint: number;
  #bytes = 0;

  constructor(bytesPerPoint: number) {
    this.#bytesPerPoint = bytesPerPoint;
  }

  onData(chunk: Buffer, isWhole: boolean): void {
    this.isEnded = isWhole;
    this.#bytes += chunk.length;
  }

  onEnd(): void {
    this.isEnded = true;
  }

  finish(): Reading {
    return { points: pointsOfBytes(this.#bytes, this.#bytesPerPoint), problem: undefined };
  }
}

class StatedField implements ResponseCost {
  isEnded = false;
  readonly #name: string;
  #values: readonly string[];

  constructor(name: string, fields: FieldSection) {
    this.#name = name;
    this.#values = valuesOf(name, fields);
  }

  onData(_chunk: Buffer, isWhole: boolean): void {
    this.isEnded = isWhole;
  }

  /** A trailer is written later than the fields, so it takes precedence. */
  onEnd(trailers: FieldSection | undefined): void {
    this.isEnded = true;
    const values = trailers === undefined ? [] : valuesOf(this.#name, trailers);
    if (values.length > 0) this.#values = values;
  }

  finish(): Reading {
    const [value, ...more] = this.#values;
    if (value === undefined) return readingOf('missing', undefined);
    const points = more.length === 0 ? pointsOfText(value.trim()) : undefined;
    return readingOf(points ?? 'invalid', undefined);
  }
}

class StatedMember implements ResponseCost {
  isEnded = false;
  readonly #body: BodyReader;
  /** Undefined if the body is not encoded. */
  readonly #decoder: Decoder | undefined;
  readonly #isUnknown: boolean;
  #isFinished = false;

  constructor(pointer: JsonPointer, fields: FieldSection) {
    const type = fields.get('content-type') ?? '';
    this.#body = EVENTS.test(type) ? new EventStream(pointer) : new JsonBody(pointer);
    const coding = codingOf(fields);
    const decoder = coding === '' ? undefined : Decoder.of(coding, (bytes) => this.#body.add(bytes, false));
    this.#decoder = decoder;
    this.#isUnknown = coding !== '' && decoder === undefined;
  }

  onData(chunk: Buffer, isWhole: boolean): void {
    if (this.#isFinished) return;
    this.isEnded = isWhole;
    if (this.#decoder !== undefined) this.#decoder.add(chunk);
    else if (!this.#isUnknown) this.#body.add(chunk, isWhole);
  }

  onEnd(): void {
    this.isEnded = true;
  }

  finish(): Reading | Promise<Reading> {
    this.#isFinished = true;
    if (this.#isUnknown) return { points: undefined, problem: 'encoding' };
    if (this.#decoder === undefined) return this.#body.end(this.isEnded);
    return this.#finishDecoded(this.#decoder, this.isEnded);
  }

  async #finishDecoded(decoder: Decoder, isEnded: boolean): Promise<Reading> {
    const stoppedBy = await decoder.end();
    const reading = this.#body.end(isEnded && stoppedBy === undefined);
    if (stoppedBy === 'found') return reading;
    return { points: reading.points, problem: stoppedBy ?? reading.problem };
  }
}

const NO_VALUES: readonly string[] = [];
const EVENTS = /^\s*text\/event-stream\s*(?:;|$)/i;

function valuesOf(name: string, fields: FieldSection): readonly string[] {
  if (!fields.has(name)) return NO_VALUES;
  return fields.names.flatMap(({ lower }, index) => (lower === name ? [fields.valueAt(index)] : []));
}

/** The content coding, in lower case; empty without one. */
function codingOf(fields: FieldSection): string {
  const coding = valuesOf('content-encoding', fields).join().trim().toLowerCase();
  return coding === 'identity' ? '' : coding;
}
