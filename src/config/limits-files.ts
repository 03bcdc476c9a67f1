import { createHash } from 'node:crypto';
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Limits, OverrideMaps, Overrides } from './limits.ts';
import { parseLimits, parseOverrides } from './limits-parse.ts';
import { ConfigError, formatPath, type Problem } from './problem.ts';
import { readText } from './reader/read-text.ts';

interface Cached<T> {
  readonly digest: string;
  readonly value: T;
}

/**
 * The limits file and the files of overrides beside it, read as one.
 *
 * A file is parsed again only when its text has changed, and a reload lets requests through between two files: a
 * file of 1 MiB (the most that a ConfigMap holds, some 17,000 overrides) takes about 100 ms.
 */
export class LimitsFiles {
  readonly #file: string;
  readonly #overrides: readonly string[];
  #main: Cached<Limits> | undefined;
  #cache = new Map<string, Cached<OverrideMaps>>();
  #last: { digests: string; limits: Limits } | undefined;

  /** `overrides` names files, or folders of which every YAML and JSON file is read. */
  constructor(file: string, overrides: readonly string[]) {
    this.#file = file;
    this.#overrides = overrides;
  }

  /** The files as they are now: a folder may have got more of them. */
  files(): readonly string[] {
    return [this.#file, ...this.#overrides.flatMap(filesIn)];
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
    collect(problems, () => {
      this.#main = reread(this.#file, this.#main, parseLimits);
    });
    const current = new Map<string, Cached<OverrideMaps>>();
    for (const file of this.#overrides.flatMap(filesIn)) {
      yield;
      collect(problems, () => current.set(file, reread(file, this.#cache.get(file), parseOverrides)));
    }
    this.#cache = current;
    if (this.#main === undefined || problems.length > 0) throw new ConfigError(problems);
    const digests = [this.#main, ...current.values()].map(({ digest }) => digest).join();
    if (this.#last?.digests === digests) return this.#last.limits;
    yield;
    const limits = this.#merged(this.#main.value);
    this.#last = { digests, limits };
    return limits;
  }

  #merged(limits: Limits): Limits {
    const sources = [[this.#file, limits] as const];
    for (const [file, { value }] of this.#cache) sources.push([file, { ...limits, ...value }]);
    const problems: Problem[] = [];
    const accounts = mergedSection('accounts', sources, problems);
    const organizations = mergedSection('organizations', sources, problems);
    if (problems.length > 0) throw new ConfigError(problems);
    return { ...limits, accounts, organizations };
  }
}

function filesIn(path: string): readonly string[] {
  if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) return [path];
  const names = readdirSync(path).filter((name) => /^[^.].*\.(ya?ml|json)$/.test(name));
  return names.sort().map((name) => join(path, name));
}

function collect(problems: Problem[], read: () => void): void {
  try {
    read();
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    problems.push(...error.problems);
  }
}

function reread<T>(
  file: string,
  cached: Cached<T> | undefined,
  read: (text: string, file: string) => T,
): Cached<T> {
  const text = readText(file, 'the setting limits names it');
  const digest = createHash('sha256').update(text).digest('base64');
  return cached?.digest === digest ? cached : { digest, value: read(text, file) };
}

function mergedSection(
  section: 'accounts' | 'organizations',
  sources: readonly (readonly [string, OverrideMaps])[],
  problems: Problem[],
): ReadonlyMap<string, Overrides> {
  const merged = new Map<string, Overrides>();
  for (const [file, maps] of sources) {
    for (const [id, overrides] of maps[section]) {
      if (merged.has(id)) problems.push(alreadySet(section, id, file, sources));
      else merged.set(id, overrides);
    }
  }
  return merged;
}

function alreadySet(
  section: 'accounts' | 'organizations',
  id: string,
  file: string,
  sources: readonly (readonly [string, OverrideMaps])[],
): Problem {
  const first = sources.find(([, maps]) => maps[section].has(id))?.[0];
  return {
    source: file,
    path: formatPath([section, id]),
    message: `is set in ${first} already`,
    hint: 'keep one of them',
  };
}
