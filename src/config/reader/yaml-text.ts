import { CORE_SCHEMA, EVENT_ID, getScalarValue, load, mergeTag, parseEvents, YAMLException } from 'js-yaml';
import type { Problem } from '../problem.ts';
import { findUnclosed } from './unclosed.ts';

/** A parsed YAML text: its value, and the line of each part of it. */
export interface YamlText {
  /** Plain values; undefined for an empty text. */
  readonly value: unknown;
  /** The line (from 1) of a path's key, or of its closest parent that exists in the text. */
  lineOf(path: readonly string[]): number | undefined;
}

/** Matches a text with at least one line that is neither blank nor a comment. */
const HAS_CONTENT = /^[^\S\n]*[^\s#]/m;

/** YAML 1.2 plus the `<<` merge key of YAML 1.1. Without it, a merged price would be lost silently. */
const SCHEMA = CORE_SCHEMA.withTags(mergeTag);

/** Parses one YAML document. JSON is a subset of YAML. Returns a Problem if the text is not valid. */
export function readYaml(text: string, source: string): YamlText | Problem {
  if (!HAS_CONTENT.test(text)) return { value: undefined, lineOf: () => undefined };
  try {
    const value = load(text, { schema: SCHEMA });
    let lines: Map<string, number> | undefined;
    return {
      value,
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
    const line = error.mark?.line === undefined ? {} : { line: error.mark.line + 1 };
    return { source, ...line, path: '', message: `is not valid YAML: ${withoutContent(error.reason)}` };
  }
}

/** What the parser reports where a bracket or quote should have been closed before. */
const CAUSED_BY_UNCLOSED = /^(?:deficient indentation|unexpected end of the stream)/;

/** Removes quoted content from the parser's message: a password that begins with `*` or `!` is parsed as an alias or tag. */
function withoutContent(reason: string): string {
  return reason.replace(/"[^"]*"|!<[^>]*>|(?<=: ).*/g, '...');
}

/** The line (from 1) of a path's key, or of its nearest parent, in a text that is valid YAML. */
export function lineOfPath(text: string, path: readonly string[]): number | undefined {
  return nearestLine(linesByPath(text), path);
}

function nearestLine(lines: ReadonlyMap<string, number>, path: readonly string[]): number | undefined {
  for (let depth = path.length; depth > 0; depth--) {
    const line = lines.get(pathKey(path.slice(0, depth)));
    if (line !== undefined) return line;
  }
  return undefined;
}

function pathKey(path: readonly string[]): string {
  return JSON.stringify(path);
}

/** An open mapping or list in the event stream. `key` is the key of the child being read. */
interface Frame {
  readonly isList: boolean;
  readonly path: readonly string[];
  key: string | undefined;
  index: number;
}

function linesByPath(text: string): Map<string, number> {
  const lines = new Map<string, number>();
  const lineAt = lineCounter(text);
  const frames: Frame[] = [];
  for (const event of parseEvents(text, {})) {
    const top = frames.at(-1);
    switch (event.type) {
      case EVENT_ID.SCALAR:
        if (top !== undefined && !top.isList && top.key === undefined) {
          top.key = getScalarValue(text, event);
          lines.set(pathKey([...top.path, top.key]), lineAt(event.valueStart));
        } else childPath(top, lines, lineAt(event.valueStart));
        break;
      case EVENT_ID.MAPPING:
      case EVENT_ID.SEQUENCE:
        frames.push({
          isList: event.type === EVENT_ID.SEQUENCE,
          path: childPath(top, lines, lineAt(event.start)),
          key: undefined,
          index: 0,
        });
        break;
      case EVENT_ID.POP:
        frames.pop();
        break;
      case EVENT_ID.ALIAS:
        childPath(top, lines, lineAt(event.anchorStart));
    }
  }
  return lines;
}

/** The path of the value that starts here. Records the line of a list item; mapping keys already have theirs. */
function childPath(parent: Frame | undefined, lines: Map<string, number>, line: number): readonly string[] {
  if (parent === undefined) return [];
  if (parent.isList) {
    const path = [...parent.path, String(parent.index++)];
    lines.set(pathKey(path), line);
    return path;
  }
  const path = parent.key === undefined ? parent.path : [...parent.path, parent.key];
  parent.key = undefined;
  return path;
}

/** Maps offsets to lines. Offsets must not decrease. */
function lineCounter(text: string): (offset: number) => number {
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
