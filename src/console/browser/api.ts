/** A request that the admin port refused, or that did not reach it. */
export class AdminApiError extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** The answer is another server's, such as the sign-in page of a proxy. Its status says nothing about what was asked for. */
export class OtherServerError extends AdminApiError {
  constructor({ status, headers }: Response) {
    const type = headers.get('Content-Type')?.split(';')[0] ?? 'no content type';
    super(0, `A server in front of the gateway answers with ${type} (status ${status})`);
  }
}

const JSON_TYPE = 'application/json';
const EVENTS_TYPE = 'text/event-stream';

/** A replica that has disappeared without a word never answers. */
const LONGEST_MS = 10_000;

const TOKEN = 'weir-admin-token';

/** What a browser can send as a token: `fetch` throws for a character above U+00FF. */
const SENDABLE = /^[\x21-\xff]+$/;

/** Keeps the token for this tab only. Throws an AdminApiError for a text that a browser cannot send: kept, it would fail on each reload. */
export function keepToken(token: string): void {
  if (!SENDABLE.test(token))
    throw new AdminApiError(
      400,
      'This text has a space, or a character that no browser can send in a token. Copy the token again.',
    );
  sessionStorage.setItem(TOKEN, token);
}

/** Whether somebody has given a token in this tab. */
export function hasToken(): boolean {
  return sessionStorage.getItem(TOKEN) !== null;
}

/** Sends JSON to the admin port and returns what it answers. Throws an AdminApiError. */
export async function ask(path: string, method = 'GET', body?: object): Promise<unknown> {
  return (await asked(path, method, body)).json();
}

/** Reads a list, and how old it was when it was sent. */
export async function askAged<T>(path: string): Promise<{ readonly value: T; readonly ageMs: number }> {
  const response = await asked(path);
  return { value: (await response.json()) as T, ageMs: Number(response.headers.get('Age')) * 1_000 };
}

function asked(path: string, method = 'GET', body?: object): Promise<Response> {
  return send(path, JSON_TYPE, {
    method,
    // What a change came to is not known until it is answered.
    ...(method === 'GET' ? { signal: AbortSignal.timeout(LONGEST_MS) } : {}),
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}

/** @param type what the admin port answers with; it refuses with JSON */
async function send(path: string, type: string, init: RequestInit): Promise<Response> {
  const token = sessionStorage.getItem(TOKEN);
  const headers = {
    ...(token === null ? {} : { Authorization: `Bearer ${token}` }),
    ...(init.body === undefined ? {} : { 'Content-Type': 'application/json' }),
  };
  const response = await fetch(path, { ...init, headers, cache: 'no-store' });
  if (!response.headers.get('Content-Type')?.startsWith(response.ok ? type : JSON_TYPE))
    throw new OtherServerError(response);
  if (response.ok) return response;
  throw new AdminApiError(response.status, await reasonOf(response));
}

async function reasonOf(response: Response): Promise<string> {
  const text = await response.text();
  try {
    return String((JSON.parse(text) as { error?: unknown }).error ?? text);
  } catch {
    return text;
  }
}

/**
 * Reads server-sent events until the stream ends or `signal` aborts. `EventSource` cannot send an Authorization header.
 * Throws an AdminApiError where the stream is refused, and another error where it ends before its first event.
 */
export async function readEvents(
  path: string,
  signal: AbortSignal,
  receive: (name: string, data: unknown) => void,
): Promise<void> {
  const { body } = await send(path, EVENTS_TYPE, { signal });
  const reader = body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  let hasEvents = false;
  // Not every browser can iterate over a stream.
  for (let read = await reader?.read(); read?.done === false; read = await reader?.read()) {
    const events = (text + read.value).split('\n\n');
    text = events.pop() ?? '';
    for (const event of events) {
      const [, name, data] = /^event: (.*)\ndata: (.*)$/.exec(event) ?? [];
      if (name === undefined || data === undefined) continue;
      receive(name, JSON.parse(data));
      hasEvents = true;
    }
  }
  if (!hasEvents) throw new Error('the stream ended before its first event');
}
