import { readFileSync } from 'node:fs';

/** The version and the description in package.json. The `weir` command reads them before it loads anything else of the configuration. */
export const { version, description } = JSON.parse(
  readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
) as { readonly version: string; readonly description: string };
