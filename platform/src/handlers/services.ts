import type { Call } from '../http/call.ts';
import type { Answer } from '../http/routes.ts';
import type { Jobs } from '../jobs/queue.ts';
import type { TokenSealer } from '../lists/token.ts';
import type { PlatformSettings } from '../settings.ts';

/** What handlers use besides the request and the database. */
export interface Services {
  readonly settings: PlatformSettings;
  readonly jobs: Jobs;
  readonly sealer: TokenSealer;
}

export function ok(body: unknown): Answer {
  return { status: 200, body };
}

/** A path parameter. openapi.yaml declares all that handlers read. */
export function pathId(call: Call, parameter: string): string {
  const id = call.params[parameter];
  if (id === undefined) throw new Error(`openapi.yaml declares no path parameter "${parameter}".`);
  return id;
}
