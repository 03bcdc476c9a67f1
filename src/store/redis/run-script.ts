import { isUnknown, type Script } from './script-call.ts';
import type { RedisClient } from './scripts.ts';

/** Runs a script that is not called often. In a Cluster, `keys` are in one slot. */
export async function runScript(
  client: RedisClient,
  script: Script,
  keys: readonly string[],
  args: readonly (string | number)[],
): Promise<unknown> {
  try {
    return await client.evalsha(script.digest, keys.length, ...keys, ...args);
  } catch (error) {
    if (!(error instanceof Error) || !isUnknown(error)) throw error;
    return client.eval(script.text, keys.length, ...keys, ...args);
  }
}

/** Whether Redis itself answered with this error: the connection's own errors leave open what has happened. */
export function isRefusal(error: unknown): error is Error {
  return error instanceof Error && error.name === 'ReplyError';
}
