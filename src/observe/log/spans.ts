import type { FieldValues } from '../../domain/field-name.ts';
import type { RequestContext } from '../../stages/request-context.ts';

/** Records the spans of requests. */
export interface Tracing {
  /** Starts the span of a request, as a child of the span that its `traceparent` names. */
  begin(headers: FieldValues, method: string, startedMs: number): RequestSpans;
}

/** The spans of one request. */
export interface RequestSpans {
  /** Names the span of the request. */
  readonly traceparent: string;
  /**
   * Starts the span of the call to the upstream. Returns the header fields that name it: name, value, name, value.
   *
   * @param origin the upstream's, such as `http://127.0.0.1:3000`
   */
  forward(origin: string): readonly string[];
  /** Ends the spans. The span of the charge is recorded now, from the times in the context. */
  end(context: RequestContext, status: number, totalMs: number): void;
}
