import { maskUrl, maskUrls } from './reader/mask.ts';

/** What is wrong, and how to fix it. */
export interface Advice {
  readonly message: string;
  readonly hint?: string | undefined;
}

/** Where a setting was read. */
export interface Origin {
  /** The file, as the user named it, or the environment variable. */
  readonly source: string;
  /** Line in that file, from 1, if known. */
  readonly line?: number | undefined;
}

/** One error in the configuration. */
export interface Problem extends Advice, Origin {
  /** The setting, such as `listen.port`; empty if the problem concerns the whole file. */
  readonly path: string;
}

/** Formats a problem, such as `weir.yaml:3: listen: unknown key "prot": did you mean "port"?`. Masks credentials in URLs. */
export function formatProblem(problem: Problem): string {
  const where = formatSource(problem);
  const what = problem.path === '' ? problem.message : `${problem.path}: ${problem.message}`;
  return maskUrls(problem.hint === undefined ? `${where}: ${what}` : `${where}: ${what}: ${problem.hint}`);
}

/** Where a problem is, such as `weir.yaml:3`. */
export function formatSource({ source, line }: Origin): string {
  const masked = maskUrls(maskUrl(source));
  return line === undefined ? masked : `${masked}:${line}`;
}

/** The path of a setting in dotted form. A key that is not a plain name is quoted: `accounts["a b"].until`. */
export function formatPath(path: readonly string[]): string {
  let text = '';
  for (const key of path) {
    if (!/^[\w-]+$/.test(key)) text += `[${JSON.stringify(key)}]`;
    else text += text === '' ? key : `.${key}`;
  }
  return text;
}

/** Thrown by the configuration loaders, with every problem found. */
export class ConfigError extends Error {
  readonly problems: readonly Problem[];

  constructor(problems: readonly Problem[]) {
    super(problems.map(formatProblem).join('\n'));
    this.name = 'ConfigError';
    this.problems = problems;
  }
}

/** The problems of a ConfigError; throws any other error again. */
export function problemsOf(error: unknown): readonly Problem[] {
  if (error instanceof ConfigError) return error.problems;
  throw error;
}

/** A location in a file. `line` is computed on demand, because most locations are never reported. */
export interface Place {
  readonly file: string;
  /** The setting at that location, as formatted by `formatPath`. */
  readonly path: string;
  line(): number | undefined;
}

/** `openapi.yaml:12` */
export function formatPlace(place: Place): string {
  const line = place.line();
  return line === undefined ? place.file : `${place.file}:${line}`;
}

/** A problem with what is written at a place. */
export function problemIn({ file, path, line }: Place, message: string, hint?: string): Problem {
  return { source: file, line: line(), path, message, hint };
}

/** The error of a file that cannot be used as a whole. */
export function fileError(source: string, message: string, hint?: string): ConfigError {
  return new ConfigError([{ source, path: '', message, hint }]);
}
