import { hash } from 'node:crypto';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { type LimitSource, type Limits, type Overrides, rowNamed } from '../../../domain/limits/limits.ts';
import { furtherRows } from '../../../domain/limits/rows.ts';
import { OVERRIDE_SECTIONS, type OverrideSection, scopeNamed } from '../../../domain/limits/scopes.ts';
import { ConfigError, formatPath, type Origin, type Problem, problemsOf } from '../../problem.ts';
import { emptiedError, FileSource } from '../../reader/file-source.ts';
import { isBlank, lineOfPath } from '../../reader/yaml-text.ts';
import { bySection, type Named, NOTHING } from './parse-limits.ts';
import type { Parsed } from './parse-messages.ts';
import { findLine, parseFile, SMALL_CHARACTERS } from './parse-thread.ts';

/** A file as last read. */
interface Source {
  readonly file: string;
  readonly digest: string;
  readonly maps: Parsed;
  /** It has nothing but white space and comments. */
  readonly isBlank: boolean;
  /** What the file could refer to, of the limits file; empty for that file itself. */
  readonly named: string;
}

/**
 * Reads the limits file and the override files and merges them. Parses a file again only if its text has changed. A reload
 * does not block requests.
 */
export class LimitsFiles {
  readonly #main: string;
  readonly #overrides: readonly string[];
  readonly #source: FileSource;
  #cache: ReadonlyMap<string, Source> = new Map();
  #last: Loaded | undefined;
  #inForce: Loaded | undefined;

  /** `overrides` lists files, and folders in which every YAML and JSON file is read. */
  constructor(main: string, overrides: readonly string[], source = new FileSource()) {
    this.#main = main;
    this.#overrides = overrides;
    this.#source = source;
  }

  /** Identifies the limits that were last loaded, by the start of a SHA-256. Equal file contents give equal versions on every replica. */
  get version(): string {
    const digests = this.#last?.sources.map(({ digest }) => digest) ?? [];
    return hash('sha256', digests.join('\n')).slice(0, 12);
  }

  /** The current list of files. A folder is listed again each time. */
  files(): readonly string[] {
    return [this.#main, ...this.#overrides.flatMap((path) => filesIn(path, this.#source))];
  }

  /**
   * Reads all files. Returns the same object as before if none has changed. Yields to the event loop between files and
   * between slices of overrides. Rejects with a ConfigError that has the problems of all files.
   */
  async load(): Promise<Limits> {
    const problems: Problem[] = [];
    const cache = new Map<string, Source>();
    // While the limits file is invalid, overrides may refer to what it named before.
    let named = namedIn(this.#last?.limits);
    for (const file of this.files()) {
      try {
        const read = await this.#readOne(file, named);
        if (read.isBlank && this.#hasContent(file)) throw emptiedError(file);
        cache.set(file, read);
        if (file === this.#main) named = namedIn(read.maps as Limits);
      } catch (error) {
        problems.push(...problemsOf(error));
      }
    }
    this.#cache = cache;
    if (problems.length > 0) throw new ConfigError(problems);
    const sources = [...cache.values()];
    if (this.#last !== undefined && isSame(this.#last.sources, sources)) return this.#last.limits;
    const limits = await merged(sources);
    this.#last = { sources, limits };
    this.#inForce ??= this.#last;
    return limits;
  }

  /** Takes what was loaded last as the limits in force, as the first ones are. Until then, those before are. */
  take(limits: Limits): void {
    if (this.#last?.limits === limits) this.#inForce = this.#last;
  }

  /** Whether the limits file has nothing but white space and comments, so that Weir's defaults apply. */
  get isBlank(): boolean {
    return this.#last?.sources[0]?.isBlank === true;
  }

  /** Whether a file of the limits in force has content. An editor may have truncated it before it writes. */
  #hasContent(file: string): boolean {
    return this.#last?.sources.some((one) => one.file === file && !one.isBlank) === true;
  }

  /**
   * Where the limit in force of a bucket is written, such as `/etc/weir/limits.yaml:12`: the default of its row, the limit of a
   * plan, or the override of this owner. The line is left out while the file is another than the one in force. Undefined where nothing is written.
   */
  async writtenAt(bucket: {
    readonly source: LimitSource;
    /** Of its row. */
    readonly name: string;
    readonly owner: string;
    readonly plan: string | undefined;
  }): Promise<string | undefined> {
    const { source, name, owner, plan } = bucket;
    const { sources = [], limits } = this.#inForce ?? {};
    const row = limits && rowNamed(limits, name);
    if (row === undefined || source === 'live') return undefined;
    if (source === 'default' && limits?.unwritten.includes(name)) return undefined;
    if (source === 'default')
      return this.#placeOf(sources[0], [row.isContract ? 'defaults' : 'limits', name]);
    if (source === 'plan') return this.#placeOf(sources[0], ['plans', plan ?? '', name]);
    const section = scopeNamed(row.scope).overrides;
    const found = sources.find(({ maps }) => maps[section].has(owner));
    return this.#placeOf(found, [section, owner, name]);
  }

  /** The file with this setting of the limits that were last loaded. */
  fileOf(path: readonly string[]): string {
    return this.#fileOf(this.#last, path);
  }

  /** The same with its line, unless the file is so large that finding it takes long. */
  locate(path: readonly string[]): Origin {
    return this.#locate(this.#last, path);
  }

  /** Where limits that are in force, or were last loaded, are written. Those in force may differ from what the files have now. */
  placesOf(limits: Limits) {
    const loaded = this.#last?.limits === limits ? this.#last : this.#inForce;
    return {
      fileOf: (path: readonly string[]) => this.#fileOf(loaded, path),
      locate: (path: readonly string[]) => this.#locate(loaded, path),
    };
  }

  /** The file with this override; the limits file for any other path. */
  #fileOf(loaded: Loaded | undefined, [section, id = '']: readonly string[]): string {
    const overrides = OVERRIDE_SECTIONS.find((name) => name === section);
    const found = overrides && loaded?.sources.find(({ maps }) => maps[overrides].has(id));
    return found?.file ?? this.#main;
  }

  #locate(loaded: Loaded | undefined, path: readonly string[]): Origin {
    const file = this.#fileOf(loaded, path);
    const text = this.#unchanged(loaded?.sources.find((one) => one.file === file));
    const line = text === undefined || text.length > SMALL_CHARACTERS ? undefined : lineOfPath(text, path);
    return { source: file, line };
  }

  async #placeOf(source: Source | undefined, path: readonly string[]): Promise<string | undefined> {
    if (source === undefined) return undefined;
    const { file } = source;
    const text = this.#unchanged(source);
    const line = text === undefined ? undefined : await findLine(text, path);
    return line === undefined ? file : `${file}:${line}`;
  }

  /** The text of a file as it was loaded; undefined if the file has another one now, or cannot be read. */
  #unchanged(source: Source | undefined): string | undefined {
    if (source === undefined) return undefined;
    try {
      const text = this.#source.read(source.file, '');
      return hash('sha256', text) === source.digest ? text : undefined;
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      return undefined;
    }
  }

  async #readOne(file: string, names: Named): Promise<Source> {
    await setImmediate();
    const text = this.#source.read(file, 'the limits section of the settings refers to it');
    const digest = hash('sha256', text);
    const isMain = file === this.#main;
    const named = isMain ? '' : JSON.stringify(names);
    const known = this.#cache.get(file);
    if (known?.digest === digest && known.named === named) return known;
    const maps = await parseFile(
      isMain ? { kind: 'limits', text, file } : { kind: 'overrides', text, file, named: names },
    );
    return { file, digest, maps, named, isBlank: isBlank(text) };
  }
}

function namedIn(limits: Limits | undefined): Named {
  if (limits === undefined) return NOTHING;
  return { rows: furtherRows(limits.rows), plans: [...limits.plans.keys()] };
}

/** Valid files, and what they set. */
interface Loaded {
  /** The limits file comes first. */
  readonly sources: readonly Source[];
  readonly limits: Limits;
}

function isSame(a: readonly Source[], b: readonly Source[]): boolean {
  return a.length === b.length && a.every(({ maps }, index) => maps === b[index]?.maps);
}

async function merged(sources: readonly Source[]): Promise<Limits> {
  const limits = sources[0]?.maps as Limits;
  if (sources.length === 1) return limits;
  const problems: Problem[] = [];
  const maps = bySection(() => new Map<string, Overrides>());
  for (const section of OVERRIDE_SECTIONS) await merge(section, maps[section], sources, problems);
  if (problems.length > 0) throw new ConfigError(problems);
  return { ...limits, ...maps };
}

/** Overrides merged before yielding to the event loop: about a millisecond of work. */
const MERGE_SLICE = 2_000;

async function merge(
  section: OverrideSection,
  result: Map<string, Overrides>,
  sources: readonly Source[],
  problems: Problem[],
): Promise<void> {
  for (const { file, maps } of sources) {
    for (const [id, overrides] of maps[section]) {
      if (result.has(id)) {
        const message = `is already set in ${sources.find(({ maps: first }) => first[section].has(id))?.file}`;
        problems.push({ source: file, path: formatPath([section, id]), message, hint: 'keep one of them' });
      } else result.set(id, overrides);
      if (result.size % MERGE_SLICE === 0) await setImmediate();
    }
  }
}

export function filesIn(path: string, source: FileSource): readonly string[] {
  const names = source.list(path)?.filter((name) => /^[^.].*\.(ya?ml|json)$/.test(name));
  if (names === undefined) return [path];
  return names.sort().map((name) => join(path, name));
}
