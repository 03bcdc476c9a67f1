export interface ProviderAnswer {
  readonly status: number;
  /** The parsed JSON of a 200; undefined for other statuses. */
  readonly body: unknown;
}

/** Thrown for an answer that the gateway cannot use. The provider is reachable, so it fails only the lookup that it answers. */
export class UnusableAnswer extends Error {}

/** Thrown for a status that says that the provider itself fails, or refuses the gateway. */
export class FailedAnswer extends Error {
  readonly status: number;

  constructor(status: number) {
    super(`answered ${status}`);
    this.status = status;
  }

  /** RFC 7662 section 2.3: this does not mean that a token is invalid. */
  get areCredentialsRefused(): boolean {
    return CREDENTIALS_REFUSED.includes(this.status);
  }

  /** Whether the provider asks for fewer calls. */
  get isOverload(): boolean {
    return OVERLOAD.includes(this.status);
  }
}

const CREDENTIALS_REFUSED = [401, 403, 407];
const OVERLOAD = [429, 503];

/** Larger than any key set or introspection answer. */
const MAX_BODY_BYTES = 1_048_576;

/**
 * Reads an answer. The body of a 200 must be JSON.
 *
 * @param statuses that are valid answers
 * @throws UnusableAnswer, FailedAnswer, or an error of the connection
 */
export async function readAnswer(response: Response, statuses: readonly number[]): Promise<ProviderAnswer> {
  const { status } = response;
  const isFailed = status >= 500 || CREDENTIALS_REFUSED.includes(status) || OVERLOAD.includes(status);
  const text = await readText(response).catch((error: unknown) => {
    throw isFailed ? new FailedAnswer(status) : error;
  });
  if (isFailed) throw new FailedAnswer(status);
  if (!statuses.includes(status)) throw new UnusableAnswer(`answered ${status}`);
  return { status, body: status === 200 ? parse(text) : undefined };
}

/** Whether an error means that an answer came, but is not HTTP or is compressed wrongly. */
export function isMalformed({ cause }: Error): boolean {
  if (!(cause instanceof Error)) return false;
  // Not every version of undici gives a parser error a code.
  return cause.name === 'HTTPParserError' || ('code' in cause && MALFORMED.test(String(cause.code)));
}

/** Codes of undici and zlib. */
const MALFORMED = /^(UND_ERR_HEADERS_OVERFLOW$|Z_)/;

async function readText({ body }: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > MAX_BODY_BYTES) throw new UnusableAnswer(`the answer has more than ${MAX_BODY_BYTES} bytes`);
    chunks.push(chunk);
  }
  // It leaves out a byte order mark, which files that are served as they are may begin with (RFC 8259 section 8.1).
  return new TextDecoder().decode(Buffer.concat(chunks));
}

/** The message of JSON.parse quotes the text, which may hold secrets. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new UnusableAnswer('the answer is not JSON');
  }
}
