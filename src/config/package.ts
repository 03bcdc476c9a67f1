import { readFileSync } from 'node:fs';

/** The version and the description in package.json. */
export const { version, description } = JSON.parse(
  readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
) as { readonly version: string; readonly description: string };
