import type { Problem } from '../config/problem.ts';
import { isMapping } from '../config/reader/schema-node.ts';
import { child, type Node, problemAt } from './documents.ts';

/** Maximum number of base paths of a server, because variables with many values multiply. */
const MAX_BASE_PATHS = 20;

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
  return [...new Set(paths)];
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
  return valid.map((address) => new URL(address, 'http://localhost/').pathname.replace(/\/+$/, ''));
}

/** The URL for every combination of the values of its variables. */
function expanded(address: string, variables: Node): readonly string[] {
  const name = /\{([^{}]+)\}/.exec(address)?.[1];
  if (name === undefined) return [address];
  const values = valuesOf(child(variables, name));
  if (values.length === 0) return [];
  return values
    .flatMap((value) => expanded(address.replaceAll(`{${name}}`, value), variables))
    .slice(0, MAX_BASE_PATHS);
}

function valuesOf({ value }: Node): readonly string[] {
  if (!isMapping(value)) return [];
  const values = [value.default, ...(Array.isArray(value.enum) ? value.enum : [])];
  const texts = values.filter((one) => one !== undefined && one !== null).map((one) => String(one));
  return [...new Set(texts.map((text) => text.replaceAll(/[{}]/g, '')))];
}
