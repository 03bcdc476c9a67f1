import { hash } from 'node:crypto';
import {
  ConfigError,
  fileError,
  formatPath,
  type Place,
  type Problem,
  problemIn,
} from '../../config/problem.ts';
import type { FileSource } from '../../config/reader/file-source.ts';
import { isMapping } from '../../config/reader/schema-node.ts';
import { readYaml, type YamlText } from '../../config/reader/yaml-text.ts';
import { isRemote, type ReferenceTarget, resolveReference } from './references.ts';

/** One file of an OpenAPI description. */
interface Document extends YamlText {
  readonly file: string;
  readonly characters: number;
}

/** A value in one of the files, with its location. */
export interface Node {
  readonly document: Document;
  readonly path: readonly string[];
  readonly value: unknown;
}

/** A longer chain of `$ref`s is treated as circular. */
const MAX_REFS = 50;

/** A file, and the digest of its text; undefined if it could not be read. */
export type FileDigest = readonly [file: string, digest: string | undefined];

/** An OpenAPI document and every file that its `$ref`s lead to. */
export class Documents {
  readonly root: Node;
  /** Of each file that was opened. */
  readonly digests: readonly FileDigest[];
  readonly #documents: ReadonlyMap<string, Document>;
  readonly #failures: ReadonlyMap<string, Problem>;
  /** Of the documents with a `$ref` to an anchor. */
  readonly #anchors = new Map<Document, ReadonlyMap<string, Node>>();
  /** By document and reference. */
  readonly #targets = new Map<string, ReferenceTarget>();

  constructor(
    root: Document,
    documents: ReadonlyMap<string, Document>,
    failures: ReadonlyMap<string, Problem>,
    digests: readonly FileDigest[],
  ) {
    this.root = rootOf(root);
    this.digests = digests;
    this.#documents = documents;
    this.#failures = failures;
  }

  all(): readonly Document[] {
    return [...this.#documents.values()];
  }

  /** Resolves the `$ref`s of a node. Returns the node itself if it has none, and a Problem if one cannot be resolved. */
  follow(node: Node): Node | Problem {
    const { nodes, problem } = this.chain(node);
    return problem ?? nodes.at(-1) ?? node;
  }

  /** A node and every node that its `$ref`s lead to, in order. With a Problem, they are those before the `$ref` that cannot be resolved. */
  chain(node: Node): { readonly nodes: readonly Node[]; readonly problem?: Problem } {
    const nodes = [node];
    for (const current of nodes) {
      const ref = isMapping(current.value) ? current.value.$ref : undefined;
      if (typeof ref !== 'string') return { nodes };
      const next = this.#target(current, ref);
      if ('message' in next) return { nodes, problem: next };
      if (nodes.length === MAX_REFS) break;
      nodes.push(next);
    }
    return { nodes, problem: problemAt(node, 'its $refs are circular') };
  }

  /** Where a reference in a document leads; undefined if it is not valid. URLs are slow to parse, so each is parsed once. */
  targetOf(reference: string, { file, value }: Document): ReferenceTarget | undefined {
    const key = `${file}\0${reference}`;
    const target = this.#targets.get(key) ?? resolveReference(reference, file, selfOf(value));
    if (target !== undefined) this.#targets.set(key, target);
    return target;
  }

  #target(from: Node, ref: string): Node | Problem {
    const target = this.targetOf(ref, from.document);
    if (target === undefined) return problemAt(child(from, '$ref'), `"${ref}" is not a valid reference`);
    const { file, fragment, words } = target;
    const failure = this.#failures.get(file);
    if (failure !== undefined) return failure;
    const document = this.#documents.get(file);
    let node: Node | undefined;
    if (document !== undefined) node = words ? rootOf(document) : this.#anchored(document, fragment);
    for (const word of words ?? []) node = existing(node, word);
    return node ?? problemAt(child(from, '$ref'), `"${ref}" cannot be resolved`);
  }

  #anchored(document: Document, anchor: string): Node | undefined {
    let anchors = this.#anchors.get(document);
    if (anchors === undefined) {
      anchors = anchorsOf(document);
      this.#anchors.set(document, anchors);
    }
    return anchors.get(anchor);
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

/** The items of a list. None if it is not a list. */
export function itemsOf(list: Node): readonly Node[] {
  return Array.isArray(list.value) ? [...list.value.keys()].map((index) => child(list, String(index))) : [];
}

function rootOf(document: Document): Node {
  return { document, path: [], value: document.value };
}

/** The schemas of a document by their anchors (JSON Schema 2020-12, core, section 8.2.2). */
function anchorsOf(document: Document): ReadonlyMap<string, Node> {
  const anchors = new Map<string, Node>();
  const seen = new Set<unknown>();
  const waiting = [rootOf(document)];
  for (const node of waiting) {
    const { value } = node;
    if (typeof value !== 'object' || value === null || seen.has(value)) continue;
    seen.add(value);
    for (const keyword of ['$anchor', '$dynamicAnchor']) {
      const { value: anchor } = child(node, keyword);
      if (typeof anchor === 'string' && !anchors.has(anchor)) anchors.set(anchor, node);
    }
    for (const key of Object.keys(value)) waiting.push(child(node, key));
  }
  return anchors;
}

function existing(node: Node | undefined, key: string): Node | undefined {
  if (node === undefined) return undefined;
  const found = child(node, key);
  return found.value === undefined ? undefined : found;
}

export function placeOf({ document, path }: Node): Place {
  return { file: document.file, path: formatPath(path), line: () => document.lineOf(path) };
}

export function problemAt(node: Node, message: string, hint?: string): Problem {
  return problemIn(placeOf(node), message, hint);
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
  const digests: FileDigest[] = [];
  let characters = 0;
  const open = (path: string): unknown => {
    const text = textOf(path, source);
    digests.push([path, digestOf(text)]);
    const opened = typeof text === 'string' ? parse(path, text, MAX_CHARACTERS - characters) : text;
    if ('message' in opened) failures.set(path, opened);
    else {
      documents.set(path, opened);
      characters += opened.characters;
    }
    return 'value' in opened ? opened.value : undefined;
  };
  crawl(file, open);
  const root = documents.get(file);
  if (root === undefined) throw new ConfigError([...failures.values()]);
  return new Documents(root, documents, failures, digests);
}

/** Whether a file still has the text that was read. It is not parsed, because that takes long. */
export function isUnchanged([file, digest]: FileDigest, source: FileSource): boolean {
  return digestOf(textOf(file, source)) === digest;
}

/** Large descriptions have some thousand files. */
const MAX_FILES = 10_000;

/** Calls `open` once for the file and for every file that it refers to, directly or indirectly. */
function crawl(root: string, open: (path: string) => unknown): void {
  const files = new Set([root]);
  for (const file of files) {
    if (files.size > MAX_FILES) throw fileError(root, TOO_MANY_FILES);
    const value = open(file);
    for (const reference of referencesIn(value)) {
      const target = resolveReference(reference, file, selfOf(value));
      if (target !== undefined) files.add(target.file);
    }
  }
}

const TOO_MANY_FILES = `refers to more than ${MAX_FILES} files`;

/** The `$self` of a document (OpenAPI 3.2 section 4.1.1). */
function selfOf(document: unknown): unknown {
  return isMapping(document) ? document.$self : undefined;
}

/** Every `$ref` in a value, including those in YAML aliases. */
function referencesIn(value: unknown): ReadonlySet<string> {
  const references = new Set<string>();
  const seen = new Set<unknown>();
  const search = (one: unknown): void => {
    // Stops at circular aliases.
    if (typeof one !== 'object' || one === null || seen.has(one)) return;
    seen.add(one);
    if (isMapping(one) && typeof one.$ref === 'string') references.add(one.$ref);
    for (const part of Object.values(one)) search(part);
  };
  search(value);
  return references;
}

/** All files together may be as large as one file: one file can have many names below /proc. */
const MAX_CHARACTERS = 64 * 1024 * 1024;

function textOf(file: string, source: FileSource): string | Problem {
  if (isRemote(file)) {
    return {
      source: file,
      path: '',
      message: 'is not a local file',
      hint: 'keep a copy next to the document',
    };
  }
  try {
    return source.read(file, 'the setting operations.openapi or a $ref refers to it');
  } catch (error) {
    if (error instanceof ConfigError && error.problems[0] !== undefined) return error.problems[0];
    throw error;
  }
}

function digestOf(text: string | Problem): string | undefined {
  return typeof text === 'string' ? hash('sha256', text, 'base64') : undefined;
}

/** @param mostCharacters that may still be read */
function parse(file: string, text: string, mostCharacters: number): Document | Problem {
  if (text.length > mostCharacters)
    return { source: file, path: '', message: 'is not read: the files of this description are too large' };
  const yaml = readYaml(text, file);
  return 'message' in yaml ? yaml : { file, characters: text.length, ...yaml };
}
