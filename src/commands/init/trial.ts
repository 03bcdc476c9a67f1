import type { ListedOperation } from '../../operations/listed-operation.ts';
import { statusOf } from './download.ts';
import { concrete, exampleOperation } from './texts.ts';

/** What the upstream answered to requests for its paths. */
export interface Trial {
  /** Empty if the paths of the API do not begin with the path of the document's `servers`. */
  readonly basePath: '' | undefined;
  /** What a person should know. */
  readonly lines: readonly string[];
}

type Answer = Awaited<ReturnType<typeof statusOf>>;

/**
 * Requests one path of a document with and without the path of its `servers`, because costs apply to the whole path. Frameworks and
 * proxies often write a `servers` entry that the API itself does not have in its paths.
 *
 * @param operations with the paths of `servers`
 * @param bare the same operations without them
 */
export async function tryPaths(
  upstream: string,
  operations: readonly ListedOperation[],
  bare: readonly ListedOperation[],
): Promise<Trial> {
  const example = exampleOperation(bare);
  if (example === undefined) return { basePath: undefined, lines: [] };
  const { method, path, writtenAt } = example;
  const isSame = (one: ListedOperation) =>
    one.method === method && one.writtenAt.path === writtenAt.path && one.writtenAt.file === writtenAt.file;
  const prefixed = operations.filter(isSame).map((one) => one.path);
  const [first = path] = prefixed;
  const isPrefixed = !prefixed.includes(path);
  const choice = `Costs apply to ${first}, because of the document's servers. If requests have no ${first.slice(0, -path.length)}, set basePath: "" in operations of weir.yaml.`;
  if (method !== 'GET') return { basePath: undefined, lines: isPrefixed ? [choice] : [] };
  const answers = await Promise.all(
    [...prefixed, ...(isPrefixed ? [path] : [])].map((one) => statusOf(urlOf(upstream, one))),
  );
  const silence = silenceOf(upstream, answers);
  if (silence !== undefined)
    return { basePath: undefined, lines: [silence, ...(isPrefixed ? [choice] : [])] };
  if (!isPrefixed) return { basePath: undefined, lines: [] };
  return compare(urlOf(upstream, first), urlOf(upstream, path), answers, choice);
}

/** @param answers the last one is for the bare path */
function compare(whole: string, bare: string, answers: readonly Answer[], choice: string): Trial {
  const ofBare = answers.at(-1) ?? '';
  const ofWhole = answers.slice(0, -1).find(isServed) ?? answers[0] ?? '';
  const fact = `${whole} ${answered(ofWhole)}, and ${bare} ${answered(ofBare)}`;
  if (isServed(ofWhole))
    return { basePath: undefined, lines: isServed(ofBare) ? [`${fact}. ${choice}`] : [] };
  if (!isServed(ofBare)) return { basePath: undefined, lines: [`${fact}. ${choice}`] };
  const line = `${fact}, so weir.yaml has basePath: "" instead of the path of the document's servers.`;
  return { basePath: '', lines: [line] };
}

/** Where APIs often answer something. */
const USUAL_PATHS = ['/', '/health', '/healthz', '/status', '/api', '/v1'];

/** A path that an API without a document serves, as far as a few guesses show; undefined if none of them is. */
export async function findPath(
  upstream: string,
): Promise<{ readonly path: string | undefined; readonly lines: readonly string[] }> {
  const answers = await Promise.all(USUAL_PATHS.map((path) => statusOf(urlOf(upstream, path))));
  if (silenceOf(upstream, answers) !== undefined)
    return { path: undefined, lines: ['Requests get a 503 until the API runs there.'] };
  return { path: USUAL_PATHS.find((_, index) => isServed(answers[index] ?? '')), lines: [] };
}

function silenceOf(upstream: string, answers: readonly Answer[]): string | undefined {
  const [reason] = answers;
  if (answers.some((one) => typeof one === 'number')) return undefined;
  return `Nothing answers at ${upstream} (${reason}). Requests get a 503 until the API runs there.`;
}

function isServed(answer: Answer): boolean {
  return typeof answer === 'number' && answer !== 404 && answer < 500;
}

function answered(answer: Answer): string {
  return typeof answer === 'number' ? `answers ${answer}` : `does not answer (${answer})`;
}

function urlOf(upstream: string, path: string): string {
  return upstream.replace(/(?<!\/)\/+$/, '') + concrete(path);
}
