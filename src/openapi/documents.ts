import { createHash } from 'node:crypto';
import { ConfigError, formatPath, type Problem } from '../config/problem.ts';
import type { FileSource } from '../config/reader/file-source.ts';
import { isMapping } from '../config/reader/schema-node.ts';
import { readYaml, type YamlText } from '../config/reader/yaml-text.ts';
import { resolveReference } from './references/resolve.ts';

/** One file of an OpenAPI description. */
interface Document extends YamlText {
  readonly file: string;
  /** Digest of the text. */
  readonly digest: string;
}

/** A value in one of the files, with its location. */
export interface Node {
  readonly document: Document;
  readonly path: readonly string[];
  readonly value: unknown;
}

/** A longer chain of `$ref`s is treated as circular. */
const MAX_REFS = 50;

/** An OpenAPI document and every file that its `$ref`s lead to. */
export class Documents {
  readonly root: Node;
  readonly #documents: ReadonlyMap<string, Document>;
  readonly #failures: ReadonlyMap<string, Problem>;

  constructor(
    root: Document,
    documents: ReadonlyMap<string, Document>,
    failures: ReadonlyMap<string, Problem>,
  ) {
    this.root = { document: root, path: [], value: root.value };
    this.#documents = documents;
    this.#failures = failures;
  }

  /** The paths of all files, including those that could not be read. */
  files(): readonly string[] {
    return [...this.#documents.keys(), ...this.#failures.keys()];
  }

  all(): readonly Document[] {
    return [...this.#documents.values()];
  }

  /** Resolves the `$ref`s of a node. Returns the node itself if it has none, and a Problem if one cannot be resolved. */
  follow(node: Node): Node | Problem {
    let current = node;
    for (let count = 0; count < MAX_REFS; count++) {
      const ref = isMapping(current.value) ? current.value.$ref : undefined;
      if (typeof ref !== 'string') return current;
      const next = this.#target(current, ref);
      if ('message' in next) return next;
      current = next;
    }
    return problemAt(node, 'its $refs are circular');
  }

  #target(from: Node, ref: string): Node | Problem {
    const target = resolveReference(ref, from.document.file);
    if (target?.words === undefined)
      return problemAt(child(from, '$ref'), `"${ref}" is not a valid reference`);
    const { file, words } = target;
    const failure = this.#failures.get(file);
    if (failure !== undefined) return failure;
    const document = this.#documents.get(file);
    let node: Node | undefined =
      document === undefined ? undefined : { document, path: [], value: document.value };
    for (const word of words) node = existing(node, word);
    return node ?? problemAt(child(from, '$ref'), `"${ref}" cannot be resolved`);
  }
}

/** The child of a node with the given key. Its value is undefined if the key does not exist. */
export function child(node: Node, key: string): Node {
  const { value, document, path } = node;
  const held = typeof value === 'object' && value !== null && Object.hasOwn(value, key);
  return {
    document,
    path: [...path, key],
    value: held ? (value as Record<string, unknown>)[key] : undefined,
  };
}

function existing(node: Node | undefined, key: string): Node | undefined {
  if (node === undefined) return undefined;
  const found = child(node, key);
  return found.value === undefined ? undefined : found;
}

export function problemAt(node: Node, message: string, hint?: string): Problem {
  const line = node.document.lineOf(node.path);
  return {
    source: node.document.file,
    ...(line === undefined ? {} : { line }),
    path: formatPath(node.path),
    message,
    ...(hint === undefined ? {} : { hint }),
  };
}

/**
 * Reads a document and the local files that it refers to. References to other hosts are not followed, so that startup does
 * not depend on them.
 *
 * @throws ConfigError if the document itself cannot be read. If a referenced file cannot be read, the problem is reported
 *   only when that `$ref` is followed, because many documents have such references in examples.
 */
export function openDocuments(file: string, source: FileSource): Documents {
  const documents = new Map<string, Document>();
  const failures = new Map<string, Problem>();
  const open = (path: string): unknown => {
    const opened = openDocument(path, source);
    if ('message' in opened) failures.set(path, opened);
    else documents.set(path, opened);
    return 'value' in opened ? opened.value : undefined;
  };
  crawl(file, open);
  const root = documents.get(file);
  if (root === undefined) throw new ConfigError([...failures.values()]);
  return new Documents(root, documents, failures);
}

/** Calls `open` once for the file and for every file that it refers to, directly or indirectly. */
function crawl(root: string, open: (path: string) => unknown): void {
  const files = new Set([root]);
  for (const file of files) {
    const seen = new Set<unknown>();
    for (const reference of referencesIn(open(file), seen)) {
      const target = resolveReference(reference, file);
      if (target !== undefined) files.add(target.file);
    }
  }
}

/** Every `$ref` in a value, including those in YAML aliases. `seen` stops at circular aliases. */
function* referencesIn(value: unknown, seen: Set<unknown>): Generator<string> {
  if (typeof value !== 'object' || value === null || seen.has(value)) return;
  seen.add(value);
  for (const [key, one] of Object.entries(value)) {
    if (key === '$ref' && typeof one === 'string') yield one;
    else yield* referencesIn(one, seen);
  }
}

function openDocument(file: string, source: FileSource): Document | Problem {
  if (/^https?:/.test(file)) {
    return {
      source: file,
      path: '',
      message: 'is not a local file',
      hint: 'keep a copy next to the document',
    };
  }
  try {
    const text = source.read(file, 'the setting operations.openapi or a $ref refers to it');
    const yaml = readYaml(text, file);
    if ('message' in yaml) return yaml;
    return { file, digest: createHash('sha256').update(text).digest('base64'), ...yaml };
  } catch (error) {
    if (error instanceof ConfigError && error.problems[0] !== undefined) return error.problems[0];
    throw error;
  }
}
