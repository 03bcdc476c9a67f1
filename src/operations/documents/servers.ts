import type { Problem } from '../../config/problem.ts';
import { isMapping } from '../../config/reader/schema-node.ts';
import { child, type Node, problemAt } from './documents.ts';

/** Maximum number of base paths of a server, because variables with many values multiply. */
const MAX_BASE_PATHS = 20;

/** Maximum number of base paths of an operation: each of them is an operation of its own. */
const MAX_SERVER_PATHS = 100;

/** Real addresses have a few. Further ones are left as they are. */
const MAX_VARIABLES = 20;

/**
 * The distinct paths of the URLs in a `servers` list, without a trailing slash; undefined if there is no list. Host names are
 * ignored, because the gateway is in front of all servers. A variable takes its default and every value of its `enum`.
 */
export function readBasePaths(owner: Node, problems: Problem[]): readonly string[] | undefined {
  const servers = child(owner, 'servers');
  if (!Array.isArray(servers.value) || servers.value.length === 0) return undefined;
  const paths = [...servers.value.keys()].flatMap((index) =>
    pathsOf(child(servers, String(index)), problems),
  );
  return [...new Set(paths)].slice(0, MAX_SERVER_PATHS);
}

function pathsOf(server: Node, problems: Problem[]): readonly string[] {
  const url = child(server, 'url');
  if (typeof url.value !== 'string') {
    problems.push(problemAt(url, 'a server needs a url'));
    return [];
  }
  const addresses = expanded(url.value, child(server, 'variables'));
  if (addresses.length === 0) problems.push(problemAt(url, 'has a variable without a default'));
  // Relative addresses are relative to where the document is served (OpenAPI 3.1 section 4.8.5).
  const valid = addresses.filter((address) => URL.canParse(address, 'http://localhost/'));
  if (valid.length < addresses.length) problems.push(problemAt(url, `"${url.value}" is not a valid URL`));
  return valid.map((address) => new URL(address, 'http://localhost/').pathname.replace(/(?<!\/)\/+$/, ''));
}

/** The URL for every combination of the values of its variables, up to the limit. Empty if a variable has no value. */
function expanded(address: string, variables: Node): readonly string[] {
  const names = new Set([...address.matchAll(/\{([^{}]+)\}/g)].map(([, name = '']) => name));
  let addresses = [address];
  for (const name of [...names].slice(0, MAX_VARIABLES)) {
    const values = valuesOf(child(variables, name)).slice(0, MAX_BASE_PATHS);
    addresses = addresses
      .flatMap((one) => values.map((value) => one.replaceAll(`{${name}}`, () => value)))
      .slice(0, MAX_BASE_PATHS);
  }
  return addresses;
}

function valuesOf({ value }: Node): readonly string[] {
  if (!isMapping(value)) return [];
  const values = [value.default, ...(Array.isArray(value.enum) ? value.enum : [])];
  const texts = values.filter((one) => one !== undefined && one !== null).map((one) => String(one));
  return [...new Set(texts.map((text) => text.replaceAll(/[{}]/g, '')))];
}
