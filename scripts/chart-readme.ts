import { type Document, isMap, type Node, type Pair, parseDocument, type Scalar, type YAMLMap } from 'yaml';

interface Row {
  readonly key: string;
  readonly fallback: string;
  readonly meaning: string;
}

/** Regenerates the values table in the chart's README from the comments of values.yaml. */
export function withValuesTable(readme: string, valuesYaml: string): string {
  const values = parseDocument(valuesYaml);
  const table = rowsOf(values.contents as YAMLMap, [], values).map(
    ({ key, fallback, meaning }) => `| \`${key}\` | ${fallback && `\`${fallback}\``} | ${meaning} |`,
  );
  const lines = ['| Value | Default | Meaning |', '|---|---|---|', ...table].join('\n');
  return readme.replace(
    /(<!-- values:begin -->\n)[\s\S]*?(<!-- values:end -->)/,
    (_, begin: string, end: string) => `${begin}${lines}\n${end}`,
  );
}

function rowsOf(map: YAMLMap, path: readonly string[], document: Document): readonly Row[] {
  return map.items.flatMap((pair, index) => {
    const { key, value } = pair as Pair<Scalar<string>, Node> & { readonly value: Node };
    const words = [...path, key.value];
    // The comment above a mapping's first key is kept with the mapping.
    const before = index === 0 ? map.commentBefore : key.commentBefore;
    if (isMap(value) && value.items.length > 0 && value.flow !== true) {
      const meaning = joined([before, value.comment]);
      const nested = rowsOf(value, words, document);
      return meaning === '' ? nested : [{ key: words.join('.'), fallback: '', meaning }, ...nested];
    }
    const fallback = JSON.stringify(value.toJS(document)).replaceAll('|', '\\|');
    return [{ key: words.join('.'), fallback, meaning: joined([before, value.comment]) }];
  });
}

/** A commented line of `limits.defaults`. */
const EXAMPLE = /^(account|organization|person|address)-(read|write):/;

/** Comments as one line; banners and commented examples are left out. */
function joined(comments: readonly (string | null | undefined)[]): string {
  return comments
    .flatMap((comment) => (comment ?? '').split('\n'))
    .map((line) => line.trim())
    .filter((line) => !line.startsWith('---') && !EXAMPLE.test(line))
    .join(' ')
    .trim()
    .replaceAll('|', '\\|');
}
