/** `npm run docs`: regenerates everything that is generated from the schemas. */
import { readFileSync, writeFileSync } from 'node:fs';
import { withValuesTable } from './chart-readme.ts';
import { platformDocument } from './platform-openapi/document.ts';
import { withTables } from './reference.ts';
import { withScaleTables } from './scale-tables.ts';
import { valuesSchema } from './values-schema.ts';

const configuration = 'docs/configuration.md';
writeFileSync(configuration, withTables(readFileSync(configuration, 'utf8')));
writeFileSync('platform/openapi.yaml', platformDocument());
writeFileSync('helm/weir/values.schema.json', valuesSchema());
const readme = 'helm/weir/README.md';
const values = readFileSync('helm/weir/values.yaml', 'utf8');
writeFileSync(readme, withValuesTable(readFileSync(readme, 'utf8'), values));
writeFileSync('docs/scale.md', withScaleTables(readFileSync('docs/scale.md', 'utf8')));
