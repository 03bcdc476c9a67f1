import type { DescriptorRules } from '../../../domain/limits/descriptors.ts';
import { ConfigError, formatSource, type Problem, problemsOf } from '../../problem.ts';
import { type FileSource, ParsedFile } from '../../reader/file-source.ts';
import { filesIn } from '../limits/limits-files.ts';
import { type DescriptorFile, parseDescriptors } from './parse-descriptors.ts';

/** Rules of all files. Each is looked up in a map, so this bounds memory and the time of a reload. */
const MOST_RULES = 50_000;

/** The files of `decisions.envoy.files`: rules in the format of envoyproxy/ratelimit, one domain in each. */
export class DescriptorFiles {
  readonly #paths: readonly string[];
  readonly #source: FileSource;
  #parsed = new Map<string, ParsedFile<DescriptorFile>>();
  #last: { readonly files: readonly DescriptorFile[]; readonly rules: DescriptorRules } | undefined;

  /** `paths` lists files, and folders in which every YAML and JSON file is read. */
  constructor(paths: readonly string[], source: FileSource) {
    this.#paths = paths;
    this.#source = source;
  }

  /** Of the files that were last loaded. */
  get warnings(): readonly Problem[] {
    return this.#last?.files.flatMap(({ warnings }) => warnings) ?? [];
  }

  /** The current list of files. A folder is listed again each time. */
  files(): readonly string[] {
    return this.#paths.flatMap((path) => filesIn(path, this.#source));
  }

  /** Reads all files. Returns the same object as before if none has changed. Rejects with a ConfigError with every problem. */
  async load(): Promise<DescriptorRules> {
    this.#parsed = new Map(this.files().map((file) => [file, this.#parsed.get(file) ?? this.#open(file)]));
    const { files, problems } = await readAll([...this.#parsed.values()]);
    problems.push(...conflictsOf(files));
    if (problems.length > 0) throw new ConfigError(problems);
    const last = this.#last;
    const isSame =
      last?.files.length === files.length && files.every((one, index) => one === last.files[index]);
    if (last !== undefined && isSame) return last.rules;
    const rules = new Map(files.map(({ domain }) => [domain.name, domain.rules]));
    this.#last = { files, rules };
    return rules;
  }

  #open(file: string): ParsedFile<DescriptorFile> {
    return new ParsedFile(
      file,
      parseDescriptors,
      'the setting decisions.envoy.files refers to it',
      this.#source,
    );
  }
}

async function readAll(parsed: readonly ParsedFile<DescriptorFile>[]) {
  const files: DescriptorFile[] = [];
  const problems: Problem[] = [];
  for (const file of parsed) {
    try {
      files.push(await file.load());
    } catch (error) {
      problems.push(...problemsOf(error));
    }
  }
  return { files, problems };
}

/** What is wrong with files that are valid one by one. */
function conflictsOf(files: readonly DescriptorFile[]): readonly Problem[] {
  const problems: Problem[] = [];
  const domains = new Map<string, DescriptorFile>();
  let count = 0;
  for (const one of files) {
    const other = domains.get(one.domain.name);
    if (other !== undefined) problems.push(twice(one, other));
    domains.set(one.domain.name, one);
    count += one.rules;
  }
  return count > MOST_RULES ? [...problems, tooMany(files[0], count)] : problems;
}

function twice({ domain, place }: DescriptorFile, other: DescriptorFile): Problem {
  const message = `${domain.name} is also the domain of ${formatSource(other.place)}`;
  return { ...place, path: 'domain', message, hint: 'write all rules of a domain into one file' };
}

function tooMany(first: DescriptorFile | undefined, count: number): Problem {
  const message = `there are ${count} rules in all files, of ${MOST_RULES} at most`;
  return { source: first?.place.source ?? '', path: 'descriptors', message };
}
