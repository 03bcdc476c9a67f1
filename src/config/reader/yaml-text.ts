import { CORE_SCHEMA, EVENT_ID, getScalarValue, load, mergeTag, parseEvents, YAMLException } from 'js-yaml';
import type { Problem } from '../problem.ts';

/** YAML that could be read: its value, and where in the text each part of it stands. */
export interface YamlText {
  /** Plain values; undefined for a text without content. */
  readonly value: unknown;
  /** The line (from 1) of a path's key, or of its nearest parent that the text has. */
  lineOf(path: readonly string[]): number | undefined;
}

/** A line with something before its comment. */
const HAS_CONTENT = /^[^\S\n]*[^\s#]/m;

/** YAML 1.2, and the `<<` of YAML 1.1: without it a merged price would be silently lost. */
const SCHEMA = CORE_SCHEMA.withTags(mergeTag);

/** Reads one YAML document (or JSON, its subset). A text that is none gives the problem instead. */
export function readYaml(text: string, source: string): YamlText | Problem {
  if (!HAS_CONTENT.test(text)) return { value: undefined, lineOf: () => undefined };
  try {
    const value = load(text, { schema: SCHEMA });
    let lines: Map<string, number> | undefined;
    return {
      value,
      // Lines are asked for only when something is wrong, so that a large valid file is parsed once.
      lineOf: (path) => {
        lines ??= linesByPath(text);
        return nearestLine(lines, path);
      },
    };
  } catch (error) {
    if (!(error instanceof YAMLException)) throw error;
    const line = error.mark?.line === undefined ? {} : { line: error.mark.line + 1 };
    return { source, ...line, path: '', message: `is not valid YAML: ${withoutContent(error.reason)}` };
  }
}

/** The parser quotes an alias, a tag or its handle: a password that begins with `*` or `!` is read as one of them. */
function withoutContent(reason: string): string {
  return reason.replace(/"[^"]*"|!<[^>]*>|(?<=: ).*/g, '...');
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

/** An open mapping or list of the event stream; `key` is the word of the child under way. */
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

/** The path of a value that begins now; a list's item gets its line here, a mapping's key has it already. */
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

/** Lines for offsets that never decrease. */
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
