import type { Problem } from '../../config/problem.ts';
import { isMapping } from '../../config/reader/schema-node.ts';
import type { Settings } from '../../config/settings/settings.ts';
import { settlementOf } from '../given-settlement.ts';
import { bracesAdvice, DEFAULT_COST, kindOf, type ListedOperation } from '../listed-operation.ts';
import { child, type Documents, type Node, placeOf, problemAt } from './documents.ts';
import { type Extension, misspellings, readAccess, readExtension, reviewSettlement } from './extension.ts';
import { operationsOf } from './methods.ts';
import { readParameters, readQueryKeys } from './parameters.ts';
import { type Described, readRules } from './read-rules.ts';
import type { RuleMaker } from './rule-maker.ts';
import { DanglingReferences } from './schema-faults.ts';
import { Schemas } from './schemas.ts';
import { readBasePaths } from './servers.ts';
import { unreadExtensions } from './unread-extensions.ts';

/** State while reading one document. */
interface Scan extends RuleMaker {
  readonly settings: Settings['operations'];
  /** Of bodies that are not validated. */
  readonly dangling: DanglingReferences;
  /** The documents, path items and operations that were searched for an `x-weir`. */
  readonly owners: Set<unknown>;
}

/** A path, with the values that its operations inherit. */
interface PathItem {
  /** The path's own members, then what its `$ref` leads to. Earlier ones take precedence. */
  readonly layers: readonly Node[];
  readonly path: string;
  readonly basePaths: readonly string[];
  readonly extension: Extension;
}

/** Paths to read before yielding to the event loop, because requests are served during a reload. */
const BATCH = 20;

/** Limit on operations and their parameters. The largest public descriptions have some ten thousand; with `$ref`s, a few lines can be many. */
const MAX_SIZE = 300_000;
const TOO_LARGE = `the document expands to more than ${MAX_SIZE} operations and parameters`;

/**
 * The operations of one OpenAPI description, its problems, and warnings.
 *
 * @param ignoresCase whether the router ignores the letter case of paths
 */
export async function readOperations(
  documents: Documents,
  settings: Settings['operations'],
  ignoresCase: boolean,
) {
  const problems: Problem[] = [];
  const warnings: Problem[] = [];
  const { root } = documents;
  const problem = versionProblem(root);
  if (problem !== undefined) return { operations: [], problems: [problem], warnings: [] };
  const version = `${child(root, 'openapi').value}`;
  const schemas = new Schemas(documents, version.startsWith('3.0.') ? 'openapi-3.0' : '2020-12');
  const dangling = new DanglingReferences(documents);
  const { maxBodyBytes } = settings;
  const owners = new Set<unknown>();
  const reading: Scan = {
    documents,
    schemas,
    problems,
    warnings,
    settings,
    maxBodyBytes,
    ignoresCase,
    dangling,
    owners,
  };
  const operations: ListedOperation[] = [];
  let paths = 0;
  let size = 0;
  for (const item of pathItems(reading)) {
    for (const [method, node] of operationsOf(item.layers, warnings)) {
      size += sizeOf(item, node);
      if (size > MAX_SIZE) return { operations: [], problems: [problemAt(root, TOO_LARGE)], warnings: [] };
      operations.push(...readOperation(reading, item, method, node));
    }
    if (++paths % BATCH === 0) await new Promise((resume) => setImmediate(resume));
  }
  warnings.push(...dangling.found, ...schemas.warnings, ...unreadExtensions(documents, owners));
  return { operations, problems, warnings };
}

/** An operation and its parameters, for each base path of the path. */
function sizeOf({ layers, basePaths }: PathItem, operation: Node): number {
  const lists = [...layers, operation].map((owner) => child(owner, 'parameters').value);
  const parameters = lists.reduce<number>((sum, list) => sum + (Array.isArray(list) ? list.length : 0), 1);
  return parameters * basePaths.length;
}

/** Why a document cannot be read at all. */
function versionProblem(root: Node): Problem | undefined {
  const { value: swagger } = child(root, 'swagger');
  if (swagger !== undefined) {
    const hint = 'convert it to OpenAPI 3, for example with swagger2openapi';
    return problemAt(child(root, 'swagger'), `this is a Swagger ${swagger} document`, hint);
  }
  const at = child(root, 'openapi');
  const { value: version } = at;
  if (version === undefined)
    return problemAt(at, 'this is not an OpenAPI document', 'it has no "openapi: 3.1.0"');
  if (typeof version !== 'string' || !/^3\.[0-2]\.\d/.test(version)) {
    const isShort = /^3\.[0-2]$/.test(`${version}`);
    const hint = `${isShort ? 'the version has three numbers' : 'expected 3.0, 3.1 or 3.2'}, such as "3.1.0"`;
    return problemAt(at, `OpenAPI ${version} is not supported`, hint);
  }
  return undefined;
}

/** Undefined if there are none. Since OpenAPI 3.1 (section 4.8.1), a document may describe webhooks or components only. */
function readPaths(root: Node, problems: Problem[]): Node | undefined {
  const paths = child(root, 'paths');
  if (isMapping(paths.value)) return paths;
  const others = ['webhooks', 'components'].some((name) => isMapping(child(root, name).value));
  if (paths.value !== undefined || !others) problems.push(problemAt(paths, 'the document lists no paths'));
  return undefined;
}

function* pathItems(reading: Scan): Generator<PathItem> {
  const { documents, problems, warnings } = reading;
  const { root } = documents;
  const paths = readPaths(root, problems);
  if (paths === undefined) return;
  warnings.push(...routersParameters(paths));
  const above = extensionOf(reading, root, {});
  const basePaths = readBasePaths(root, problems) ?? [''];
  for (const path of Object.keys(paths.value as object)) {
    if (path.startsWith('x-')) continue;
    const at = child(paths, path);
    const { nodes: layers, problem } = documents.chain(at);
    if (problem !== undefined) problems.push(problem);
    else if (!path.startsWith('/')) problems.push(problemAt(at, 'a path begins with a slash'));
    else {
      const extension = extensionOf(reading, layers.at(-1) ?? at, above);
      const servers = layers.map((layer) => readBasePaths(layer, problems)).find((one) => one !== undefined);
      yield { layers, path, basePaths: servers ?? basePaths, extension };
    }
  }
}

function routersParameters(paths: Node): readonly Problem[] {
  return Object.keys(paths.value as object).flatMap((path) => {
    const advice = bracesAdvice(path);
    return advice === undefined ? [] : [problemAt(child(paths, path), ...advice)];
  });
}

function extensionOf(
  { settings, problems, warnings, owners }: Scan,
  owner: Node,
  above: Extension,
): Extension {
  owners.add(owner.value);
  warnings.push(...misspellings(owner));
  return readExtension(owner, above, settings.maxCost, problems);
}

/** One operation for each base path of its servers. */
function readOperation(reading: Scan, item: PathItem, method: string, node: Node): ListedOperation[] {
  const { settings, problems } = reading;
  const extension = extensionOf(reading, node, item.extension);
  const { cost = DEFAULT_COST, costNode, mostNode, kind = kindOf(method) } = extension;
  const access = readAccess(node, reading.documents.root, extension, problems);
  reviewSettlement(node, extension, problems);
  const settlement = cost === 0 ? undefined : settlementOf(extension, settings);
  const basePaths =
    settings.basePath === undefined ? (readBasePaths(node, problems) ?? item.basePaths) : [settings.basePath];
  const { validation = 'parameters' } = extension;
  const described = validation === 'none' ? undefined : describe(reading, item, node, extension);
  const operationId = child(node, 'operationId').value;
  const tags = tagsOf(node);
  return basePaths.map((basePath) => {
    const path = basePath + item.path;
    return {
      method,
      path,
      id: typeof operationId === 'string' ? operationId : `${method} ${path}`,
      kind,
      cost,
      access,
      tags,
      listed: true,
      writtenAt: placeOf(node),
      costWrittenAt: costNode === undefined ? undefined : placeOf(costNode),
      settlement,
      mostWrittenAt: mostNode === undefined ? undefined : placeOf(mostNode),
      validation,
      rules: described === undefined ? undefined : readRules(reading, path, described),
    };
  });
}

/** OpenAPI 3.1 section 4.8.10. What is not a list of texts selects nothing. */
function tagsOf(node: Node): readonly string[] {
  const { value } = child(node, 'tags');
  return Array.isArray(value) ? value.filter((tag) => typeof tag === 'string') : [];
}

function describe(reading: Scan, item: PathItem, node: Node, { validation }: Extension): Described {
  const { documents, dangling, settings } = reading;
  const body = child(node, 'requestBody');
  if (validation !== 'body') dangling.search(body);
  return {
    parameters: readParameters(reading, [...item.layers.toReversed(), node]),
    queryKeys: readQueryKeys(documents, node),
    requestBody: validation === 'body' && body.value !== undefined ? body : undefined,
    undeclaredQuery: validation === undefined ? settings.undeclaredQuery : 'reject-all',
  };
}
