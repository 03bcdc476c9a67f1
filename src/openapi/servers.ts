import type { Problem } from '../config/problem.ts';
import { isMapping } from '../config/reader/schema-node.ts';
import { child, type Node, problemAt } from './documents.ts';

/** Base paths that one set of servers may stand for: a variable with many values must not multiply without end. */
const MAX_BASE_PATHS = 20;

/**
 * The paths that the addresses of a `servers` list end in, each once, without a slash at their end; undefined where
 * there is no such list. Host names do not matter: the gateway stands in front of all of them. A variable counts
 * with its default and every value of its `enum`.
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
  if (valid.length < addresses.length) problems.push(problemAt(url, `"${url.value}" is no address`));
  return valid.map((address) => new URL(address, 'http://localhost/').pathname.replace(/\/+$/, ''));
}

/** The address once for every combination of its variables' values. */
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
