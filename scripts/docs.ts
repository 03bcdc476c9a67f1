/** `npm run docs`: makes everything anew that is generated from the schemas. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { withTables } from './reference.ts';
import { valuesSchema } from './values-schema.ts';

for (const file of ['README.md', 'docs/configuration.md']) {
  if (existsSync(file)) writeFileSync(file, withTables(readFileSync(file, 'utf8')));
}
writeFileSync('helm/weir/values.schema.json', valuesSchema());
