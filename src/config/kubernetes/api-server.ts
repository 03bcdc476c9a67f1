import { readFile } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { join } from 'node:path';

export interface RequestOptions {
  /** The request fails if no byte arrives for this long. */
  readonly idleMs: number;
  readonly signal: AbortSignal;
}

/** Idle time before the first TCP keep-alive probe. A dead peer is detected about ten seconds later. */
const KEEP_ALIVE_MS = 10_000;
const MAX_ERROR_CHARACTERS = 65_536;

/** The API server answered with a status other than 200, such as 403 or 404. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
}

/** A client for the Kubernetes API server, for use inside a pod. Every request opens a new connection. */
export class ApiServer {
  readonly #options;

  constructor(options: {
    /** Such as `https://10.96.0.1:443`. */
    readonly url: string;
    /** Contains `token`, `ca.crt` and `namespace`, as mounted by the kubelet, which replaces the token about every hour. */
    readonly credentialsFolder: string;
  }) {
    this.#options = options;
  }

  /**
   * Sends a GET and returns the response if its status is 200. `path` is relative to the pod's namespace, such as
   * `configmaps/limits`.
   *
   * @throws ApiError with the server's message for any other status; other errors if there is no response
   */
  async get(path: string, options: RequestOptions): Promise<IncomingMessage> {
    const [token, ca, namespace] = await Promise.all(
      ['token', 'ca.crt', 'namespace'].map((name) => this.#read(name)),
    );
    const url = new URL(`/api/v1/namespaces/${namespace}/${path}`, this.#options.url);
    const response = await open(url, ca ?? '', token ?? '', options);
    response.setEncoding('utf8');
    if (response.statusCode === 200) return response;
    throw new ApiError(`${response.statusCode}: ${await messageOf(response)}`);
  }

  async #read(name: string): Promise<string> {
    return (await readFile(join(this.#options.credentialsFolder, name), 'utf8')).trim();
  }
}

function open(
  url: URL,
  ca: string,
  token: string,
  { idleMs, signal }: RequestOptions,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const sent = request(url, {
      agent: false,
      ca,
      headers: { accept: 'application/json', authorization: `Bearer ${token}`, 'user-agent': 'weir' },
      signal,
      timeout: idleMs,
    });
    sent.once('socket', (socket) => socket.setKeepAlive(true, KEEP_ALIVE_MS));
    let answer: IncomingMessage | undefined;
    sent.once('timeout', () => (answer ?? sent).destroy(new Error(`no answer for ${idleMs / 1000} s`)));
    sent.once('response', (response) => {
      answer = response;
      resolve(response);
    });
    sent.on('error', reject);
    sent.end();
  });
}

/** The message of the server's Status object, or the start of the body if it is something else. */
async function messageOf(response: AsyncIterable<string>): Promise<string> {
  let text = '';
  for await (const chunk of response) {
    text += chunk;
    if (text.length > MAX_ERROR_CHARACTERS) break;
  }
  try {
    return String((JSON.parse(text) as { message?: unknown }).message);
  } catch {
    return text.slice(0, 200);
  }
}
