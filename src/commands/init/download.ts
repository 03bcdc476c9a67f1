import { noTlsText } from '../../domain/shown.ts';

/** A text, or the end of a sentence that begins with the URL. */
export type Download =
  | { readonly text: string }
  | { readonly problem: string /** Undefined if nothing answered at all. */; readonly status?: number };

/** Frameworks generate large documents when they are first asked. */
const DEADLINE_MS = 10_000;

/** Where nothing answers, a person waits for this long. */
const PROBE_MS = 3_000;

/** As large as a document on disk may be. */
const MAX_BYTES = 64 * 1024 * 1024;

/** The text at a URL, which redirects may lead to. Never rejects. */
export async function download(url: string): Promise<Download> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(DEADLINE_MS) });
    if (!response.ok) {
      await response.body?.cancel();
      return { problem: `answers ${response.status}`, status: response.status };
    }
    return await readAll(response);
  } catch (error) {
    return { problem: `does not answer (${reasonOf(error, DEADLINE_MS)})` };
  }
}

/** The status that a GET of a URL is answered with, or why there is none. Never rejects. */
export async function statusOf(url: string): Promise<number | string> {
  try {
    const response = await fetch(url, { redirect: 'manual', signal: AbortSignal.timeout(PROBE_MS) });
    await response.body?.cancel();
    return response.status;
  } catch (error) {
    return reasonOf(error, PROBE_MS);
  }
}

async function readAll(response: Response): Promise<Download> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length;
    if (bytes > MAX_BYTES)
      return { problem: 'is too large for an OpenAPI document', status: response.status };
    chunks.push(chunk);
  }
  return { text: Buffer.concat(chunks).toString('utf8') };
}

/** `fetch` hides the cause of a failure, such as ECONNREFUSED. */
function reasonOf(error: unknown, deadlineMs: number): string {
  if (!(error instanceof Error)) return String(error);
  if (error.name === 'TimeoutError') return `no answer within ${deadlineMs / 1000} seconds`;
  const { code, message } = (error.cause ?? {}) as NodeJS.ErrnoException;
  return noTlsText(message ?? '') ?? code ?? message ?? error.message;
}
