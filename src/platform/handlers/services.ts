import type { Call } from '../http/call.ts';
import type { Answer, Handler } from '../http/routes.ts';
import type { Jobs } from '../jobs/queue.ts';
import { type ListRules, readPage } from '../lists/page.ts';
import { resourceList } from '../lists/resource-list.ts';
import type { ListScope } from '../lists/scope.ts';
import type { TokenSealer } from '../lists/token.ts';
import { findResource, resourceBody } from '../resources/resources.ts';
import type { PlatformSettings } from '../settings.ts';

/** What handlers work with, beside the request and the database. */
export interface Services {
  readonly settings: PlatformSettings;
  readonly jobs: Jobs;
  readonly sealer: TokenSealer;
}

export function ok(body: unknown): Answer {
  return { status: 200, body };
}

/** Serves a list of the resources of one kind. */
export function listOf({ sealer }: Services, kind: string, scope: ListScope, rules?: ListRules): Handler {
  return async (call, db) => ok(await readPage(sealer, call, resourceList(db, call, kind, scope), rules));
}

/** Serves one resource of a kind, named by the path parameter. */
export function readOf(kind: string, parameter: string): Handler {
  return async (call, db) =>
    ok(resourceBody(await findResource(db, call.caller, kind, pathId(call, parameter))));
}

/** A path parameter; openapi.yaml declares every one that a handler asks for. */
export function pathId(call: Call, parameter: string): string {
  const id = call.params[parameter];
  if (id === undefined) throw new Error(`openapi.yaml declares no path parameter "${parameter}".`);
  return id;
}
