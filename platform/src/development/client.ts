/** Calls the API through the gateway, as any client does. For development commands. */
export interface ActingAs {
  /** Where the gateway listens. */
  readonly url: string;
  readonly token: string;
  /** The target Account. Default: the caller's own. */
  readonly account: string | undefined;
}

/** The gateway cannot be reached, or the request is refused. The message is meant for users. */
export class PlatformCallError extends Error {}

/** Sends one request. Throws a PlatformCallError if there is no response or the request is refused. */
export async function callPlatform(
  as: ActingAs,
  method: string,
  path: string,
  body?: unknown,
): Promise<Record<string, unknown>> {
  // The gateway may be below a path of its host.
  const response = await fetch(new URL(`.${path}`, `${as.url.replace(/(?<!\/)\/+$/, '')}/`), {
    method,
    headers: {
      authorization: `Bearer ${as.token}`,
      ...(as.account && { 'x-service-account': as.account }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  }).catch((error: Error) => {
    const cause = error.cause instanceof Error ? error.cause.message : error.message;
    throw new PlatformCallError(
      `No gateway answers at ${as.url} (${cause}): start one with "npm start", or name another with --url.`,
    );
  });
  const answer = toObject(await response.text().catch(() => 'cut off'));
  if (answer === undefined)
    throw new PlatformCallError(
      `${as.url} answered ${response.status} without JSON: is it the gateway? Name another with --url.`,
    );
  if (!response.ok)
    throw new PlatformCallError(`The request was refused: ${answer.detail ?? response.status}`);
  return answer;
}

/** The JSON object of a response, which is empty without a body. Undefined if the body is anything else. */
function toObject(text: string): Record<string, unknown> | undefined {
  if (text === '') return {};
  try {
    const value: unknown = JSON.parse(text);
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
    return isObject ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}
