import { EVENT_ID, type Event, getScalarValue, parseEvents, SCALAR_STYLE, type Schema } from 'js-yaml';
import type { Problem } from '../problem.ts';
import { lineCounter } from './yaml-text.ts';

/** A mapping whose next value belongs to a key that has been read, or a list. */
interface OpenCollection {
  readonly isList: boolean;
  hasKey: boolean;
}

/**
 * Keys without quotes that YAML reads as a value with another text: `007` as the number 7, `12e4` as 120000, `~` as null. The entry would
 * belong to another id. The keys of `tokens` are secret, so a problem names only the line.
 *
 * @param text valid YAML
 */
export function misreadKeys(text: string, schema: Schema, source: string): readonly Problem[] {
  const problems: Problem[] = [];
  const open: OpenCollection[] = [];
  const lineAt = lineCounter(text);
  for (const event of parseEvents(text, {})) {
    if (event.type === EVENT_ID.POP) {
      open.pop();
      continue;
    }
    const isKey = takesKey(open.at(-1));
    if (event.type === EVENT_ID.MAPPING || event.type === EVENT_ID.SEQUENCE) {
      open.push({ isList: event.type === EVENT_ID.SEQUENCE, hasKey: false });
    } else if (event.type === EVENT_ID.SCALAR && isKey && isPlain(event)) {
      const kind = misreadKind(getScalarValue(text, event), schema);
      const line = lineAt(event.valueStart);
      const message = `has a key that YAML reads as ${kind}, with another text`;
      if (kind !== undefined) problems.push({ source, line, path: '', message, hint: 'put it in quotes' });
    }
  }
  return problems;
}

/** Whether a scalar has neither quotes nor a tag, so that its text decides on its type. */
function isPlain({ style, tagStart, tagEnd }: Event & { readonly type: typeof EVENT_ID.SCALAR }): boolean {
  return style === SCALAR_STYLE.PLAIN && tagStart === tagEnd;
}

/** Whether the next event is a key, not a value. */
function takesKey(top: OpenCollection | undefined): boolean {
  if (top === undefined || top.isList) return false;
  top.hasKey = !top.hasKey;
  return top.hasKey;
}

/** What a plain key is read as; undefined if that has the text of the key, such as 1234. */
function misreadKind(key: string, schema: Schema): string | undefined {
  const { value } = schema.resolveImplicitScalarTag(key);
  if (String(value) === key) return undefined;
  return value === null ? 'null' : `a ${typeof value}`;
}
