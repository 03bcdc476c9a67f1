import { identitiesSchema } from '../src/config/files/identities/parse-identities.ts';
import { limitsSchema } from '../src/config/files/limits/limits-schema.ts';
import { asNode, type SchemaNode } from '../src/config/reader/schema-node.ts';
import { settingsSchema } from '../src/config/settings/settings.ts';
import { type Row, rowsOf } from './rows.ts';

/** A table for each pair of markers `<!-- name:begin -->` and `<!-- name:end -->` that a document may have. */
const TABLES: Readonly<Record<string, () => string>> = {
  settings: () => sectionTable(asNode(settingsSchema)),
  limits: () => limitsTable(rowsOf(asNode(limitsSchema))),
  'settings-full': () => fullTable(rowsOf(asNode(settingsSchema)), true),
  'limits-full': () => fullTable(rowsOf(asNode(limitsSchema)), false),
  'identities-full': () => fullTable(rowsOf(asNode(identitiesSchema)), false),
};

/** Regenerates the tables between the markers of a document. */
export function withTables(document: string): string {
  let result = document;
  for (const [name, table] of Object.entries(TABLES)) {
    const between = new RegExp(`(<!-- ${name}:begin -->\n)[\\s\\S]*?(<!-- ${name}:end -->)`, 'g');
    result = result.replace(between, (_, begin: string, end: string) => `${begin}${table()}\n${end}`);
  }
  return result;
}

/** A row for each section: its description and the names of its settings. */
function sectionTable(schema: SchemaNode): string {
  const rows = Object.entries(schema.properties ?? {}).map(([name, section]) => {
    const own = rowsOf(section, [name]).map((row) => row.path.split('.')[1]);
    const settings = [...new Set(own)].map(codeOf).filter((setting) => setting !== '');
    return [codeOf(name), section.description ?? '', settings.join(', ')];
  });
  return table(['Section', 'What for', 'Settings'], rows);
}

function limitsTable(rows: readonly Row[]): string {
  return table(
    ['Setting', 'Default'],
    rows.map((row) => [codeOf(row.path), codeOf(row.fallback)]),
  );
}

function fullTable(rows: readonly Row[], hasVariables: boolean): string {
  const head = ['Setting', 'Takes', 'Default', ...(hasVariables ? ['Variable'] : []), 'Meaning'];
  const cells = rows.map((row) => [
    `\`${row.path}\``,
    row.takes,
    codeOf(row.fallback),
    ...(hasVariables ? [codeOf(row.variable)] : []),
    row.kinds === undefined ? row.description : `${row.description} (${row.kinds.join(', ')})`,
  ]);
  return table(head, cells);
}

function codeOf(text: string | undefined): string {
  return text === undefined || text === '' ? '' : `\`${text}\``;
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}
