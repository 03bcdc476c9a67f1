import type { BodyRules } from './body.ts';
import type { HeaderRule } from './headers.ts';
import type { PathRule } from './path.ts';
import type { QueryRules } from './query.ts';

/** The compiled rules for the requests of one operation. */
export interface RequestRules {
  readonly query: QueryRules;
  readonly path: readonly PathRule[];
  readonly headers: readonly HeaderRule[];
  /** Undefined if the body is streamed without validation. */
  readonly body: BodyRules | undefined;
}
