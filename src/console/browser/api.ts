/** A request that the admin port refused, or that did not reach it. */
export class AdminApiError extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

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
  return send(path, {
    method,
    // What a change came to is not known until it is answered.
    ...(method === 'GET' ? { signal: AbortSignal.timeout(LONGEST_MS) } : {}),
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}

async function send(path: string, init: RequestInit): Promise<Response> {
  const token = sessionStorage.getItem(TOKEN);
  const headers = {
    ...(token === null ? {} : { Authorization: `Bearer ${token}` }),
    ...(init.body === undefined ? {} : { 'Content-Type': 'application/json' }),
  };
  const response = await fetch(path, { ...init, headers, cache: 'no-store' });
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
 * Throws an AdminApiError where the stream is refused.
 */
export async function readEvents(
  path: string,
  signal: AbortSignal,
  receive: (name: string, data: unknown) => void,
): Promise<void> {
  const { body } = await send(path, { signal });
  if (body === null) return;
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const events = (text + value).split('\n\n');
    text = events.pop() ?? '';
    for (const event of events) {
      const [, name, data] = /^event: (.*)\ndata: (.*)$/.exec(event) ?? [];
      if (name !== undefined && data !== undefined) receive(name, JSON.parse(data));
    }
  }
}
