import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Limits, OverrideMaps, Overrides } from './limits.ts';
import { parseLimits, parseOverrides } from './limits-parse.ts';
import { ConfigError, formatPath, type Problem } from './problem.ts';
import { ParsedFile } from './reader/parsed-file.ts';

const HINT = 'the setting limits names it';

/**
 * The limits file and the files of overrides beside it, read as one.
 *
 * A file is parsed again only when its text has changed, and a reload lets requests through between two files: a
 * file of 1 MiB (the most that a ConfigMap holds, some 17,000 overrides) takes about 100 ms.
 */
export class LimitsFiles {
  readonly #main: ParsedFile<Limits>;
  readonly #overrides: readonly string[];
  #files = new Map<string, ParsedFile<OverrideMaps>>();
  #last: { readonly sources: readonly Source[]; readonly limits: Limits } | undefined;

  /** `overrides` names files, or folders of which every YAML and JSON file is read. */
  constructor(file: string, overrides: readonly string[]) {
    this.#main = new ParsedFile(file, parseLimits, HINT);
    this.#overrides = overrides;
  }

  /** The files as they are now: a folder may have got more of them. */
  files(): readonly string[] {
    return [this.#main.file, ...this.#overrides.flatMap(filesIn)];
  }

  /** Throws a ConfigError that carries the problems of all files. */
  load(): Limits {
    const steps = this.#read();
    for (;;) {
      const step = steps.next();
      if (step.done) return step.value;
    }
  }

  /** The same, with a pause between two files; the same object as before where no file has changed. */
  async reload(): Promise<Limits> {
    const steps = this.#read();
    for (;;) {
      const step = steps.next();
      if (step.done) return step.value;
      await new Promise((resume) => setImmediate(resume));
    }
  }

  *#read(): Generator<void, Limits> {
    const problems: Problem[] = [];
    const limits = collect(problems, () => this.#main.read());
    const files = new Map<string, ParsedFile<OverrideMaps>>();
    const sources: Source[] = limits === undefined ? [] : [{ file: this.#main.file, maps: limits }];
    for (const file of this.#overrides.flatMap(filesIn)) {
      yield;
      const parsed = this.#files.get(file) ?? new ParsedFile(file, parseOverrides, HINT);
      files.set(file, parsed);
      const maps = collect(problems, () => parsed.read());
      if (maps !== undefined) sources.push({ file, maps });
    }
    this.#files = files;
    if (limits === undefined || problems.length > 0) throw new ConfigError(problems);
    if (this.#last !== undefined && isSame(this.#last.sources, sources)) return this.#last.limits;
    yield;
    this.#last = { sources, limits: merged(limits, sources) };
    return this.#last.limits;
  }
}

/** One file's overrides. */
interface Source {
  readonly file: string;
  readonly maps: OverrideMaps;
}

function isSame(a: readonly Source[], b: readonly Source[]): boolean {
  return a.length === b.length && a.every(({ maps }, index) => maps === b[index]?.maps);
}

function merged(limits: Limits, sources: readonly Source[]): Limits {
  if (sources.length === 1) return limits;
  const problems: Problem[] = [];
  const accounts = mergedSection('accounts', sources, problems);
  const organizations = mergedSection('organizations', sources, problems);
  if (problems.length > 0) throw new ConfigError(problems);
  return { ...limits, accounts, organizations };
}

function filesIn(path: string): readonly string[] {
  if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) return [path];
  const names = readdirSync(path).filter((name) => /^[^.].*\.(ya?ml|json)$/.test(name));
  return names.sort().map((name) => join(path, name));
}

function collect<T>(problems: Problem[], read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    problems.push(...error.problems);
    return undefined;
  }
}

function mergedSection(
  section: 'accounts' | 'organizations',
  sources: readonly Source[],
  problems: Problem[],
): ReadonlyMap<string, Overrides> {
  const result = new Map<string, Overrides>();
  for (const { file, maps } of sources) {
    for (const [id, overrides] of maps[section]) {
      if (!result.has(id)) result.set(id, overrides);
      else problems.push({ source: file, ...alreadySet(section, id, sources) });
    }
  }
  return result;
}

function alreadySet(
  section: 'accounts' | 'organizations',
  id: string,
  sources: readonly Source[],
): Omit<Problem, 'source'> {
  const first = sources.find(({ maps }) => maps[section].has(id))?.file;
  return { path: formatPath([section, id]), message: `is set in ${first} already`, hint: 'keep one of them' };
}
