import { hash } from 'node:crypto';
import { join } from 'node:path';
import type { Limits, OverrideMaps, Overrides } from '../../domain/limits.ts';
import { ConfigError, formatPath, type Problem } from '../problem.ts';
import { FileSource } from '../reader/file-source.ts';
import { parseElsewhere } from './elsewhere.ts';
import { type Job, type Parsed, parseHere } from './job.ts';

/** What reading takes: to parse a file, or (undefined) to let others go first. */
type Steps<T> = Generator<Job | undefined, T, Parsed | undefined>;

/** A file as it was read last. */
interface Known {
  readonly digest: string;
  readonly maps: Parsed;
}

/**
 * The limits file and the files of overrides beside it, read as one. A file is parsed again only when its text has
 * changed, and a reload does not keep the requests waiting.
 */
export class LimitsFiles {
  readonly #main: string;
  readonly #overrides: readonly string[];
  readonly #source: FileSource;
  #cache: ReadonlyMap<string, Known> = new Map();
  #last: { readonly sources: readonly Source[]; readonly limits: Limits } | undefined;

  /** `overrides` names files, or folders of which every YAML and JSON file is read. */
  constructor(main: string, overrides: readonly string[], source = new FileSource()) {
    this.#main = main;
    this.#overrides = overrides;
    this.#source = source;
  }

  /** Names what was loaded last: the same for the same texts, wherever they are read. */
  get version(): string {
    const digests = this.#last?.sources.map(({ digest }) => digest) ?? [];
    return hash('sha256', digests.join('\n')).slice(0, 12);
  }

  /** The files as they are now: a folder may have got more of them. */
  files(): readonly string[] {
    return [this.#main, ...this.#overrides.flatMap((path) => filesIn(path, this.#source))];
  }

  /** Throws a ConfigError that carries the problems of all files. */
  load(): Limits {
    const steps = this.#read();
    let step = steps.next();
    while (!step.done) {
      const job = step.value;
      step = job === undefined ? steps.next() : resumed(steps, () => parseHere(job));
    }
    return step.value;
  }

  /** The same while requests are served; the same object as before where no file has changed. */
  async reload(): Promise<Limits> {
    const steps = this.#read();
    let step = steps.next();
    while (!step.done) {
      if (step.value === undefined) {
        await new Promise((resume) => setImmediate(resume));
        step = steps.next();
      } else {
        const parsing = await Promise.allSettled([parseElsewhere(step.value)]);
        step = resumed(steps, () => settled(parsing[0]));
      }
    }
    return step.value;
  }

  *#read(): Steps<Limits> {
    const problems: Problem[] = [];
    const cache = new Map<string, Known>();
    for (const file of this.files()) {
      try {
        cache.set(file, yield* this.#readOne(file));
      } catch (error) {
        if (!(error instanceof ConfigError)) throw error;
        problems.push(...error.problems);
      }
    }
    this.#cache = cache;
    if (problems.length > 0) throw new ConfigError(problems);
    const sources = [...cache].map(([file, known]) => ({ file, ...known }));
    if (this.#last !== undefined && isSame(this.#last.sources, sources)) return this.#last.limits;
    const limits = yield* merged(sources);
    this.#last = { sources, limits };
    return limits;
  }

  *#readOne(file: string): Steps<Known> {
    yield undefined;
    const text = this.#source.read(file, 'the setting limits names it');
    const digest = hash('sha256', text);
    const known = this.#cache.get(file);
    if (known?.digest === digest) return known;
    const maps = yield { kind: file === this.#main ? 'limits' : 'overrides', text, file };
    if (maps === undefined) throw new Error(`${file} was not parsed`);
    return { digest, maps };
  }
}

function resumed<T>(steps: Steps<T>, parse: () => Parsed): IteratorResult<Job | undefined, T> {
  let parsed: Parsed;
  try {
    parsed = parse();
  } catch (error) {
    return steps.throw(error);
  }
  return steps.next(parsed);
}

function settled<T>(result: PromiseSettledResult<T>): T {
  if (result.status === 'rejected') throw result.reason;
  return result.value;
}

/** One file's overrides; those of the limits file come first. */
interface Source extends Known {
  readonly file: string;
}

function isSame(a: readonly Source[], b: readonly Source[]): boolean {
  return a.length === b.length && a.every(({ maps }, index) => maps === b[index]?.maps);
}

function* merged(sources: readonly Source[]): Steps<Limits> {
  const limits = sources[0]?.maps as Limits;
  if (sources.length === 1) return limits;
  const problems: Problem[] = [];
  const accounts = yield* mergedSection('accounts', sources, problems);
  const organizations = yield* mergedSection('organizations', sources, problems);
  if (problems.length > 0) throw new ConfigError(problems);
  return { ...limits, accounts, organizations };
}

/** Between two pauses; about a millisecond's worth. */
const MERGED_AT_ONCE = 2_000;

function* mergedSection(
  section: keyof OverrideMaps,
  sources: readonly Source[],
  problems: Problem[],
): Steps<ReadonlyMap<string, Overrides>> {
  const result = new Map<string, Overrides>();
  for (const { file, maps } of sources) {
    for (const [id, overrides] of maps[section]) {
      if (result.has(id)) problems.push({ source: file, ...alreadySet(section, id, sources) });
      else result.set(id, overrides);
      if (result.size % MERGED_AT_ONCE === 0) yield undefined;
    }
  }
  return result;
}

function alreadySet(
  section: keyof OverrideMaps,
  id: string,
  sources: readonly Source[],
): Omit<Problem, 'source'> {
  const first = sources.find(({ maps }) => maps[section].has(id))?.file;
  return {
    path: formatPath([section, id]),
    message: `is set in ${first} already`,
    hint: 'keep one of them',
  };
}

function filesIn(path: string, source: FileSource): readonly string[] {
  const names = source.list(path)?.filter((name) => /^[^.].*\.(ya?ml|json)$/.test(name));
  if (names === undefined) return [path];
  return names.sort().map((name) => join(path, name));
}
