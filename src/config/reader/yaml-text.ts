import {
  CORE_SCHEMA,
  EVENT_ID,
  getScalarValue,
  load,
  mapTag,
  mergeTag,
  parseEvents,
  YAMLException,
} from 'js-yaml';
import type { Problem } from '../problem.ts';
import { expansionProblem } from './expansion.ts';
import { readMappingAsJson } from './plain-json.ts';
import { findUnclosed } from './unclosed.ts';

/** A parsed YAML text: its value, and the line of each part of it. */
export interface YamlText {
  /** Plain values; undefined for an empty text. */
  readonly value: unknown;
  /** The line (from 1) of a path's key, or of its closest parent that exists in the text. */
  lineOf(path: readonly string[]): number | undefined;
  /** Whether a key is a number, a boolean or null for YAML. Its text may be another one in the value. */
  readonly hasTypedKeys: boolean;
}

/** Matches a text with at least one line that is neither blank nor a comment. */
const HAS_CONTENT = /^[^\S\n]*[^\s#]/m;

/** Whether a text has nothing but white space and comments. */
export function isBlank(text: string): boolean {
  return !HAS_CONTENT.test(text);
}

/** Matches the `*` of an alias, which comes after white space or one of these characters (YAML 1.2.2 chapter 7), and some others. */
const MAY_BE_ALIAS = /\*(?<=(?:^|[\s[{,:])\*)/;

/** YAML 1.2 plus the `<<` merge key of YAML 1.1. Without it, a merged cost would be lost silently. */
export const SCHEMA = CORE_SCHEMA.withTags(mergeTag);

/**
 * Parses one YAML document. JSON is a subset of YAML. Returns a Problem if the text is not valid, or if its aliases expand to much
 * more than the text.
 */
export function readYaml(text: string, source: string): YamlText | Problem {
  if (isBlank(text)) return { value: undefined, lineOf: () => undefined, hasTypedKeys: false };
  try {
    const keys = { areTyped: false };
    const value = readMappingAsJson(text) ?? load(text, { schema: SCHEMA.withTags(mapTagThatNotes(keys)) });
    const expansion = MAY_BE_ALIAS.test(text) ? expansionProblem(value, text.length) : undefined;
    if (expansion !== undefined) return { source, path: '', message: `is not usable: ${expansion}` };
    let lines: Lines | undefined;
    return {
      value,
      hasTypedKeys: keys.areTyped,
      // Lines are needed only for error messages, so a large valid file is parsed once.
      lineOf: (path) => {
        lines ??= linesByPath(text);
        return nearestLine(lines, path);
      },
    };
  } catch (error) {
    if (!(error instanceof YAMLException)) throw error;
    const unclosed = CAUSED_BY_UNCLOSED.test(error.reason)
      ? findUnclosed(text.slice(0, error.mark?.position))
      : undefined;
    if (unclosed !== undefined) {
      const message = `is not valid YAML: the ${unclosed.text} is not closed`;
      return { source, line: unclosed.line, path: '', message };
    }
    const line = error.mark && error.mark.line + 1;
    return { source, line, path: '', message: `is not valid YAML: ${reasonOf(error, text)}` };
  }
}

/** The parser makes a text of each key that it adds. Here, it also notes keys that are another kind of value. */
function mapTagThatNotes(keys: { areTyped: boolean }): typeof mapTag {
  const addPair: typeof mapTag.addPair = (container, key, value) => {
    if (typeof key !== 'string') keys.areTyped = true;
    return mapTag.addPair(container, key, value);
  };
  return { ...mapTag, addPair };
}

/** What the parser reports where a bracket or quote should have been closed before. */
const CAUSED_BY_UNCLOSED = /^(?:deficient indentation|unexpected end of the stream)/;

/** What the parser reports, with the name of a key that is there twice. */
function reasonOf({ reason, mark }: YAMLException, text: string): string {
  const [key] = /^[\w./-]{1,64}/.exec(text.slice(mark?.position)) ?? [];
  if (reason !== 'duplicated mapping key' || key === undefined || mark === undefined)
    return withoutContent(reason);
  // The keys of `tokens` are secret.
  const tokens = linesByPath(text).children.get('tokens');
  const isSecret = tokens !== undefined && hasLine(tokens, mark.line + 1);
  return isSecret ? 'a token is written twice' : `the key "${key}" is written twice`;
}

function hasLine({ children }: Lines, line: number): boolean {
  return [...children.values()].some((one) => one.line === line);
}

/** Removes quoted content from the parser's message: a password that begins with `*` or `!` is parsed as an alias or tag. */
function withoutContent(reason: string): string {
  return reason.replace(/"[^"]*"|!<[^>]*>|(?<=: ).*/g, '...');
}

/** The line (from 1) of a path's key, or of its nearest parent, in a text that is valid YAML. */
export function lineOfPath(text: string, path: readonly string[]): number | undefined {
  clearTimeout(lastTimer);
  if (lastLines?.text !== text) lastLines = { text, lines: linesByPath(text) };
  lastTimer = setTimeout(() => {
    lastLines = undefined;
  }, LINES_KEPT_MS).unref();
  return nearestLine(lastLines.lines, path);
}

/** How long the lines of one text are kept after they were used: a flood of refusals asks for some of them each second. */
const LINES_KEPT_MS = 2_000;

let lastLines: { readonly text: string; readonly lines: Lines } | undefined;
let lastTimer: NodeJS.Timeout | undefined;

/** Where a value of a text begins, and the same of each value in it. */
interface Lines {
  /** From 1. Undefined for the whole text. */
  readonly line: number | undefined;
  readonly children: Map<string, Lines>;
}

function nearestLine(lines: Lines, path: readonly string[]): number | undefined {
  let nearest = lines;
  for (const key of path) {
    const next = nearest.children.get(key);
    if (next === undefined) break;
    nearest = next;
  }
  return nearest.line;
}

/** An open mapping or list in the event stream. `child` is the value of a mapping whose key has been read. */
interface OpenCollection {
  readonly isList: boolean;
  readonly lines: Lines;
  child: Lines | undefined;
}

function linesByPath(text: string): Lines {
  const root: Lines = { line: undefined, children: new Map() };
  const lineAt = lineCounter(text);
  const frames: OpenCollection[] = [];
  for (const event of parseEvents(text, {})) {
    const top = frames.at(-1);
    switch (event.type) {
      case EVENT_ID.SCALAR:
        if (top !== undefined && !top.isList && top.child === undefined)
          top.child = addLine(top.lines, getScalarValue(text, event), lineAt(event.valueStart));
        else linesOfValue(top, root, lineAt(event.valueStart));
        break;
      case EVENT_ID.MAPPING:
      case EVENT_ID.SEQUENCE:
        frames.push({
          isList: event.type === EVENT_ID.SEQUENCE,
          lines: linesOfValue(top, root, lineAt(event.start)),
          child: undefined,
        });
        break;
      case EVENT_ID.POP:
        frames.pop();
        break;
      case EVENT_ID.ALIAS:
        linesOfValue(top, root, lineAt(event.anchorStart));
    }
  }
  return root;
}

/** The value that starts here. A list item is added with this line; a value of a mapping has the line of its key. */
function linesOfValue(parent: OpenCollection | undefined, root: Lines, line: number): Lines {
  if (parent === undefined) return root;
  if (parent.isList) return addLine(parent.lines, String(parent.lines.children.size), line);
  const { child = parent.lines } = parent;
  parent.child = undefined;
  return child;
}

function addLine({ children }: Lines, key: string, line: number): Lines {
  const added: Lines = { line, children: new Map() };
  children.set(key, added);
  return added;
}

/** Maps offsets to lines. Offsets must not decrease. */
export function lineCounter(text: string): (offset: number) => number {
  let line = 1;
  let next = text.indexOf('\n');
  return (offset) => {
    while (next !== -1 && next < offset) {
      line++;
      next = text.indexOf('\n', next + 1);
    }
    return line;
  };
}
