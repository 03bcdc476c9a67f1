import type { Fields } from './text-formats.ts';

/** The values that a mapping can take from a line. */
export const MAPPED = [
  'time',
  'durationMs',
  'durationSeconds',
  'method',
  'path',
  'account',
  'organization',
  'principal',
  'address',
  'status',
  'cost',
] as const;

export type MappedName = (typeof MAPPED)[number];

/** The path of each value, as the names of nested fields. */
export type Mapping = Readonly<Partial<Record<MappedName, readonly string[]>>>;

/**
 * `account=.jwt.sub,path=.uri` as a mapping. A name with a dot in it is quoted: `.headers."x.account"`.
 * Returns a sentence if it is invalid.
 */
export function parseMapping(text: string): Mapping | string {
  const mapping: Partial<Record<MappedName, readonly string[]>> = {};
  for (const part of text.split(/,(?=[A-Za-z]+=)/)) {
    const [, name = '', path = ''] = /^\s*([A-Za-z]+)=(.+?)\s*$/.exec(part) ?? [];
    if (!isMapped(name)) return `"${part}" does not start with one of ${MAPPED.join(', ')} and =`;
    const names = parsePath(path);
    if (names === undefined) return `"${path}" is not a path such as .jwt.sub`;
    mapping[name] = names;
  }
  return mapping;
}

function isMapped(name: string): name is MappedName {
  return (MAPPED as readonly string[]).includes(name);
}

function parsePath(path: string): readonly string[] | undefined {
  const written = path.startsWith('.') ? path : `.${path}`;
  if (!/^(?:\.(?:"[^"]+"|[^."]+))+$/.test(written)) return undefined;
  return [...written.matchAll(/\.(?:"([^"]+)"|([^."]+))/g)].map(([, quoted, plain]) => quoted ?? plain ?? '');
}

/** The field at a path, or undefined if it does not exist. */
export function fieldAt(fields: Fields, path: readonly string[] | undefined): unknown {
  if (path === undefined) return undefined;
  let value: unknown = fields;
  for (const name of path) {
    if (typeof value !== 'object' || value === null) return undefined;
    value = (value as Fields)[name];
  }
  return value;
}
