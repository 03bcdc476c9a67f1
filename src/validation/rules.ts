import type { BodyRules } from './body.ts';
import type { HeaderRule } from './headers.ts';
import type { PathRule } from './path.ts';
import type { QueryRules } from './query.ts';

/** Everything that a request for one operation must satisfy, compiled once. */
export interface RequestRules {
  readonly query: QueryRules;
  readonly path: readonly PathRule[];
  readonly headers: readonly HeaderRule[];
  /** Undefined where the body is streamed unseen. */
  readonly body: BodyRules | undefined;
}
