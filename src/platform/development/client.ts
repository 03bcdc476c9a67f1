/** For whom a development command speaks to the platform, in the gateway's place. */
export interface ActingAs {
  /** Where the platform listens. */
  readonly url: string;
  readonly account: string;
  readonly organization: string | undefined;
  readonly principal: string;
}

/** The platform is not there, or refuses; the message is for a person. */
export class PlatformCallError extends Error {}

/** Sends one request; a PlatformCallError when the platform is not there or refuses. */
export async function callPlatform(
  as: ActingAs,
  method: string,
  path: string,
  body?: unknown,
): Promise<Record<string, unknown>> {
  const response = await fetch(new URL(path, as.url), {
    method,
    headers: {
      'x-account-id': as.account,
      'x-principal-id': as.principal,
      'x-principal-type': 'Person',
      ...(as.organization && { 'x-organization-id': as.organization }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  }).catch((error: Error) => {
    const cause = error.cause instanceof Error ? error.cause.message : error.message;
    throw new PlatformCallError(
      `No platform answers at ${as.url} (${cause}): start one with "weir platform" or "weir demo".`,
    );
  });
  const text = await response.text();
  const answer = (text ? JSON.parse(text) : {}) as Record<string, unknown>;
  if (!response.ok) throw new PlatformCallError(`The platform refused: ${answer.detail ?? response.status}`);
  return answer;
}
