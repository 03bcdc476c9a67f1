import { maskUrl, maskUrls } from './reader/mask.ts';

/** One thing wrong with the configuration. */
export interface Problem {
  /** Where it was found: a file as the user named it, or an environment variable. */
  readonly source: string;
  /** Line in that file, from 1, where one is known. */
  readonly line?: number;
  /** The setting, such as `listen.port`; empty for a problem of the whole file. */
  readonly path: string;
  readonly message: string;
  /** What to do about it. */
  readonly hint?: string;
}

/** `weir.yaml:3: listen: unknown key "prot": did you mean "port"?`, without the credentials of any URL. */
export function formatProblem(problem: Problem): string {
  const source = maskUrl(problem.source);
  const where = problem.line === undefined ? source : `${source}:${problem.line}`;
  const what = problem.path === '' ? problem.message : `${problem.path}: ${problem.message}`;
  return maskUrls(problem.hint === undefined ? `${where}: ${what}` : `${where}: ${what}: ${problem.hint}`);
}

/** A setting's path as a user would write it; a word that is no plain name is quoted. */
export function formatPath(path: readonly string[]): string {
  let text = '';
  for (const word of path) {
    if (!/^[\w-]+$/.test(word)) text += `[${JSON.stringify(word)}]`;
    else text += text === '' ? word : `.${word}`;
  }
  return text;
}

/** Thrown by the loaders. Carries every problem that was found, not only the first. */
export class ConfigError extends Error {
  readonly problems: readonly Problem[];

  constructor(problems: readonly Problem[]) {
    super(problems.map(formatProblem).join('\n'));
    this.name = 'ConfigError';
    this.problems = problems;
  }
}

/** A place in a file. Its line is counted on demand: only who asks for it pays for it. */
export interface Place {
  readonly file: string;
  /** The setting that stands there, as `formatPath` writes it. */
  readonly path: string;
  line(): number | undefined;
}

/** `openapi.yaml:12` */
export function formatPlace(place: Place): string {
  const line = place.line();
  return line === undefined ? place.file : `${place.file}:${line}`;
}
