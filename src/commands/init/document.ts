import { existsSync } from 'node:fs';
import { formatProblem, type Problem, problemsOf } from '../../config/problem.ts';
import { isMapping } from '../../config/reader/schema-node.ts';
import { readYaml } from '../../config/reader/yaml-text.ts';
import { CommandError } from '../../process/failure.ts';
import { type Download, download } from './download.ts';

/** Where the OpenAPI document of an API comes from. */
export type FoundDocument =
  /** A file of the user, at this path. */
  | { readonly kind: 'file'; readonly file: string }
  /** The text at a URL, and the name of the file to write it to. */
  | {
      readonly kind: 'download';
      readonly file: string;
      readonly text: string;
      readonly url: string;
      /** Whether `init` guessed the URL. */
      readonly isGuess: boolean;
    }
  /** A sentence about what was looked for. */
  | { readonly kind: 'none'; readonly reason: string };

/** Where frameworks serve their documents: FastAPI, springdoc, NestJS, ASP.NET and Fastify. */
const USUAL_PATHS = [
  '/openapi.json',
  '/openapi.yaml',
  '/v3/api-docs',
  '/api-json',
  '/openapi/v1.json',
  '/documentation/json',
  '/swagger.json',
];

/**
 * Finds the document that is named, or the one of this folder, or the one that the API serves at a usual path.
 *
 * @param named a file or a URL
 * @throws CommandError if it is a URL and cannot be downloaded
 */
export async function findDocument(named: string | undefined, upstream: string): Promise<FoundDocument> {
  if (named !== undefined && /^https?:\/\//i.test(named)) {
    const { text } = await get(named);
    return downloaded(named, text, false);
  }
  const file = named ?? ['openapi.yaml', 'openapi.json'].find((name) => existsSync(name));
  return file === undefined ? askUpstream(upstream) : { kind: 'file', file };
}

async function get(url: string): Promise<{ readonly text: string }> {
  const answer = await download(url);
  if ('text' in answer) return answer;
  throw new CommandError(`Nothing was written, because ${url} ${answer.problem}.`);
}

function downloaded(url: string, text: string, isGuess: boolean): FoundDocument {
  const json = jsonOf(text);
  // Indented, because costs are written into it by hand.
  return json === undefined
    ? { kind: 'download', file: 'openapi.yaml', text, url, isGuess }
    : { kind: 'download', file: 'openapi.json', text: `${JSON.stringify(json, null, 2)}\n`, url, isGuess };
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

async function askUpstream(upstream: string): Promise<FoundDocument> {
  const base = upstream.replace(/(?<!\/)\/+$/, '');
  const answers = await Promise.all(
    USUAL_PATHS.map(async (path) => {
      const url = base + path;
      const answer = await download(url);
      return { url, answer, version: 'text' in answer ? versionOf(answer.text, url) : undefined };
    }),
  );
  // A text that is not valid is only taken where there is no other, to report what is wrong with it.
  for (const wanted of [3, 'broken'] as const) {
    for (const { url, answer, version } of answers) {
      if (version === wanted && 'text' in answer) return downloaded(url, answer.text, true);
    }
  }
  const old = answers.find(({ version }) => version === 2);
  return { kind: 'none', reason: old === undefined ? nothingFound(upstream, answers) : isSwagger(old.url) };
}

/** The major version of an OpenAPI document; undefined for any other text. */
function versionOf(text: string, url: string): 2 | 3 | 'broken' | undefined {
  const yaml = readYaml(text, url);
  // A page in HTML may mention the word.
  if (!('value' in yaml))
    return !text.trimStart().startsWith('<') && /openapi["']?:/.test(text) ? 'broken' : undefined;
  if (!isMapping(yaml.value)) return undefined;
  if (yaml.value.openapi !== undefined) return 3;
  return yaml.value.swagger === undefined ? undefined : 2;
}

function nothingFound(
  upstream: string,
  answers: readonly { readonly url: string; readonly answer: Download }[],
): string {
  const silent = answers.flatMap(({ answer }) =>
    'problem' in answer && answer.status === undefined ? [answer] : [],
  );
  const [first] = silent;
  if (first !== undefined && silent.length === answers.length)
    return `${upstream} ${first.problem}, so it was not asked for an OpenAPI document.`;
  for (const { url, answer } of answers) {
    if ('problem' in answer && answer.status !== 404)
      return `No OpenAPI document was found: ${url} ${answer.problem}. If the API has one, run weir init with its file or URL.`;
  }
  return `${upstream} has no OpenAPI document at ${USUAL_PATHS.join(', ')}.`;
}

function isSwagger(url: string): string {
  return (
    `${url} is a Swagger 2.0 document, which Weir does not read. ` +
    'Convert it to OpenAPI 3, for example with swagger2openapi, and run weir init with the result.'
  );
}

/**
 * The problems of a document that was downloaded. Lines are left out, because JSON is indented anew.
 *
 * @param file where the document would have been written
 */
export function problemsOfDownload(error: unknown, file: string, url: string): readonly Problem[] {
  return problemsOf(error).map((problem) =>
    problem.source === file ? { ...problem, source: url, line: undefined } : problem,
  );
}

/** Why a document that was found is not used: its first problem. */
export function unusable([first, ...more]: readonly Problem[], url: string): string {
  const others = more.length === 0 ? '' : ` (and ${more.length} more)`;
  return `${url} is not used: ${first === undefined ? '' : formatProblem(first)}${others}.`;
}
