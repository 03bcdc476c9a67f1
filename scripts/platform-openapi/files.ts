import { readFileSync } from 'node:fs';
import { parse } from 'yaml';

/** Part of an OpenAPI document, as JSON. */
export type Json = Readonly<Record<string, unknown>>;

/** A line of operations.yaml, or one that follows from the catalog. */
export interface OperationSpec {
  readonly method: 'get' | 'post' | 'patch' | 'delete';
  readonly path: string;
  readonly id: string;
  readonly tag: string;
  readonly summary: string;
  /** Points; 1 without it. */
  readonly cost?: number;
  readonly personOnly?: boolean;
  /** Needs no caller: the media type that it answers with. */
  readonly publicType?: string;
  /** Names in `components.parameters`. */
  readonly query?: readonly string[];
  /** Names in `components.schemas`. */
  readonly body?: string;
  readonly isBodyOptional?: boolean;
  readonly answer?: string;
  /** The schema of the items of a page. */
  readonly list?: string;
  /** Of the answer; 200 without it. */
  readonly status?: number;
  /** Beyond those that every operation has, and 404 for one with a path parameter. */
  readonly refusals?: readonly number[];
}

export const writtenOperations = read('operations.yaml') as readonly OperationSpec[];
export const writtenComponents = read('components.yaml') as Readonly<Record<string, Json>>;
export const writtenExamples = read('examples.yaml') as Json;

function read(name: string): unknown {
  return parse(readFileSync(new URL(name, import.meta.url), 'utf8'));
}

export function refTo(section: string, name: string): Json {
  return { $ref: `#/components/${section}/${name}` };
}
