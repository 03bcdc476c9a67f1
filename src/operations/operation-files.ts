import { existsSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import {
  type Advice,
  ConfigError,
  formatPath,
  formatPlace,
  formatProblem,
  type Place,
  type Problem,
  problemIn,
  problemsOf,
} from '../config/problem.ts';
import { FileSource } from '../config/reader/file-source.ts';
import { readText } from '../config/reader/read-text.ts';
import { readYaml } from '../config/reader/yaml-text.ts';
import type { Settings } from '../config/settings/settings.ts';
import type { Access } from '../domain/operation.ts';
import { type Documents, type FileDigest, isUnchanged, openDocuments } from './documents/documents.ts';
import { BOTH, FREE } from './documents/extension.ts';
import { mostProblem, NOT_CHARGED, settlementOf, sourceProblem } from './given-settlement.ts';
import { bracesAdvice, DEFAULT_COST, KINDS_BY_METHOD, type ListedOperation } from './listed-operation.ts';

/** Used if the settings have neither documents nor a list, not even an empty one. */
const DEFAULT_DOCUMENT = 'openapi.yaml';

/** The documents as last read. */
interface LoadedOperations {
  readonly digests: readonly FileDigest[];
  readonly operations: readonly ListedOperation[];
  readonly warnings: readonly Problem[];
}

/** The operations from the OpenAPI documents and the list in the settings. */
export class OperationFiles {
  readonly #settings: Settings['operations'];
  readonly #settingsFile: string;
  readonly #source: FileSource;
  readonly #roots: readonly string[];
  readonly #ignoresCase: boolean;
  #files: readonly string[];
  #last: LoadedOperations | undefined;

  /**
   * @param settingsFile used in messages, and to find the default document in the same folder
   * @param letterCase as the operations are matched. It decides where a parameter ends that shares its segment with letters
   */
  constructor(
    settings: Settings['operations'],
    settingsFile: string,
    source = new FileSource(),
    letterCase: 'insensitive' | 'sensitive' = 'insensitive',
  ) {
    this.#settings = settings;
    this.#ignoresCase = letterCase === 'insensitive';
    this.#source = source;
    this.#settingsFile = settingsFile;
    const { openapi, list } = settings;
    if (openapi !== undefined) this.#roots = typeof openapi === 'string' ? [openapi] : openapi;
    else
      this.#roots =
        list.length > 0 || hasList(settingsFile) ? [] : [resolve(dirname(settingsFile), DEFAULT_DOCUMENT)];
    this.#files = this.#roots;
  }

  /** The documents, and all files that they referred to when they were last read. */
  files(): readonly string[] {
    return this.#files;
  }

  /** What is valid in the documents that were last read, but most likely not what was meant. */
  get warnings(): readonly Problem[] {
    return this.#last?.warnings ?? [];
  }

  /** Reads all operations. Returns the same list as before if no file has changed. Throws a ConfigError with every problem. */
  async load(): Promise<readonly ListedOperation[]> {
    if (this.#last?.digests.every((one) => isUnchanged(one, this.#source))) {
      this.#files = filesOf(this.#last.digests);
      return this.#last.operations;
    }
    const opened = await Promise.allSettled(
      this.#roots.map(async (root) => openDocuments(root, this.#source)),
    );
    const documents = opened.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
    const problems = opened.flatMap((one) => (one.status === 'fulfilled' ? [] : problemsOf(one.reason)));
    const digests = documents.flatMap((one) => one.digests);
    const found = filesOf(digests);
    // Also watch files that are missing now, because they may reappear.
    this.#files = problems.length === 0 ? found : [...new Set([...this.#files, ...this.#roots, ...found])];
    const warnings: Problem[] = [];
    const operations = await this.#read(documents, problems, warnings);
    if (problems.length > 0) throw new ConfigError(distinct(problems));
    this.#last = { digests, operations, warnings: distinct(warnings) };
    return operations;
  }

  async #read(
    documents: readonly Documents[],
    problems: Problem[],
    warnings: Problem[],
  ): Promise<readonly ListedOperation[]> {
    const operations: ListedOperation[] = [];
    for (const one of documents) {
      // Where there is no document, the compiler of schemas is not loaded.
      const { readOperations } = await import('./documents/read-operations.ts');
      const read = await readOperations(one, this.#settings, this.#ignoresCase);
      operations.push(...read.operations);
      problems.push(...read.problems);
      warnings.push(...read.warnings);
    }
    operations.push(...this.#listed(problems));
    problems.push(...findDuplicates(operations));
    warnings.push(...findSharedIds(operations));
    return operations;
  }

  /** The operations of the setting `operations.list`. Their requests are not validated. */
  #listed(problems: Problem[]): readonly ListedOperation[] {
    const { list, maxCost } = this.#settings;
    const lineOf = linesOf(this.#settingsFile);
    return list.map((listed, index) => {
      const { method, path, cost = DEFAULT_COST, kind = KINDS_BY_METHOD[method], id } = listed;
      const place = (...words: string[]) =>
        settingPlace(this.#settingsFile, ['operations', 'list', String(index), ...words], lineOf);
      problems.push(...listedProblems(listed, place, maxCost));
      return {
        id: id ?? `${method} ${path}`,
        method,
        path,
        cost,
        kind,
        access: accessOf(listed),
        tags: listed.tags,
        listed: true,
        writtenAt: place(),
        costWrittenAt: cost === DEFAULT_COST ? undefined : place('cost'),
        settlement: cost === 0 ? undefined : settlementOf(listed, this.#settings),
        mostWrittenAt: listed.reserve && place('reserve', 'most'),
        validation: 'none',
        rules: undefined,
      };
    });
  }
}

type ListedSetting = Settings['operations']['list'][number];

function accessOf(listed: ListedSetting): Access {
  if (listed.personOnly) return 'person';
  return listed.public ? 'public' : 'caller';
}

function listedProblems(
  listed: ListedSetting,
  place: (...words: string[]) => Place,
  maxCost: number,
): readonly Problem[] {
  const { cost = DEFAULT_COST, reserve, settle } = listed;
  const problems: Problem[] = [];
  if (listed.personOnly && listed.public) problems.push(problemIn(place(), BOTH));
  const inBraces = bracesAdvice(listed.path);
  if (inBraces !== undefined) problems.push(problemIn(place('path'), ...inBraces));
  if (cost > maxCost && reserve === undefined && settle === undefined) {
    const message = `must be a whole number from 1 to ${maxCost}, is ${cost}`;
    problems.push(problemIn(place('cost'), message, 'operations.maxCost sets the maximum'));
  }
  if (cost === 0 && accessOf(listed) !== 'public') problems.push(problemIn(place('cost'), ...FREE));
  return [...problems, ...settlementProblems(listed, cost, place)];
}

function settlementProblems(
  listed: ListedSetting,
  cost: number,
  place: (...words: string[]) => Place,
): readonly Problem[] {
  const found: (readonly [path: readonly string[], Advice | undefined])[] = [
    [['settle'], sourceProblem(listed)],
    [['reserve', 'most'], mostProblem(listed, cost)],
    [['reserve'], cost === 0 && listed.reserve ? NOT_CHARGED : undefined],
    [['settle'], cost === 0 && listed.settle ? NOT_CHARGED : undefined],
  ];
  return found.flatMap(([path, problem]) =>
    problem === undefined ? [] : [problemIn(place(...path), problem.message, problem.hint)],
  );
}

/** Removes duplicates, which occur if several operations share a faulty schema. */
function distinct(problems: readonly Problem[]): readonly Problem[] {
  return [...new Map(problems.map((problem) => [formatProblem(problem), problem])).values()];
}

function filesOf(digests: readonly FileDigest[]): readonly string[] {
  return [...new Set(digests.map(([file]) => file))];
}

/** Whether the settings have a list, which may be empty. */
function hasList(settingsFile: string): boolean {
  if (!existsSync(settingsFile)) return false;
  const yaml = readYaml(readText(settingsFile, ''), settingsFile);
  const settings =
    'lineOf' in yaml ? (yaml.value as { operations?: { list?: unknown } } | undefined) : undefined;
  return settings?.operations?.list !== undefined;
}

function settingPlace(file: string, path: readonly string[], lineOf: ReturnType<typeof linesOf>): Place {
  return { file, path: formatPath(path), line: () => lineOf(path) };
}

/** The lines of a file, which is parsed once, when the first of them is asked for. */
function linesOf(file: string) {
  let yaml: ReturnType<typeof readYaml> | undefined;
  return (path: readonly string[]) => {
    yaml ??= readYaml(readText(file, ''), file);
    return 'lineOf' in yaml ? yaml.lineOf(path) : undefined;
  };
}

/** One problem for each operation that matches the same requests as an earlier one, which would make its cost ambiguous. */
function findDuplicates(operations: readonly ListedOperation[]): readonly Problem[] {
  const first = new Map<string, ListedOperation>();
  const problems: Problem[] = [];
  for (const operation of operations) {
    const { method, path, writtenAt } = operation;
    const shape = `${method} ${path.replaceAll(/\{[^{}]*\}/g, '{}')}`;
    const other = first.get(shape);
    if (other === undefined) {
      first.set(shape, operation);
      continue;
    }
    const message = `${method} ${path} matches the same requests as ${method} ${other.path} at ${formatPlace(other.writtenAt)}`;
    problems.push(problemIn(writtenAt, message, 'keep one of them'));
  }
  return problems;
}

/**
 * One warning for each id that several operations have. Operations at one place are one operation, with several base paths or in several
 * paths.
 */
function findSharedIds(operations: readonly ListedOperation[]): readonly Problem[] {
  const first = new Map<string, ListedOperation>();
  const found = new Map<string, Problem>();
  for (const operation of operations) {
    const { id, method, path, writtenAt } = operation;
    const other = first.get(id);
    if (other === undefined) first.set(id, operation);
    else if (!found.has(id) && !isSamePlace(other.writtenAt, writtenAt)) {
      const message = `${method} ${path} has the id of ${other.method} ${other.path} at ${formatPlace(other.writtenAt)}`;
      found.set(id, problemIn(writtenAt, message, SHARED_ID));
    }
  }
  return [...found.values()];
}

const SHARED_ID = 'limits that name the id count both, and decisions that name it have the cost of the last';

function isSamePlace(one: Place, other: Place): boolean {
  return one.file === other.file && one.path === other.path;
}
