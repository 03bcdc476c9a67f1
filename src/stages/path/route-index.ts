import FindMyWay, { type HTTPMethod } from 'find-my-way';
import type { Access } from '../../domain/operation.ts';
import {
  decodedLiteral,
  isParameter,
  parameterExpression,
  segmentParts,
} from '../../operations/documents/segment.ts';
import type { ListedOperation } from '../../operations/listed-operation.ts';
import type { PathProfile } from './folded-path.ts';
import { inCase } from './folded-path.ts';
import { OtherNames } from './other-names.ts';

/** A declared path of one method. */
export interface Route {
  readonly operation: ListedOperation;
  /** Folded, with the names of its parameters. */
  readonly path: string;
  /** Whether a request for it may also match a path that is declared with, or without, a slash at its end. */
  readonly hasTwin: boolean;
}

/** The declared paths of all methods. Every path that it is asked about is folded. */
export class RouteIndex {
  readonly #router = createRouter();
  readonly #names: OtherNames;
  readonly #ignoresSlash: boolean;
  /** Whether a slash ends any declared path. If not, a path without one needs no second look. */
  readonly #hasSlashed: boolean;

  constructor(
    operations: readonly ListedOperation[],
    letterCase: PathProfile['case'],
    trailingSlash: PathProfile['trailingSlash'],
  ) {
    this.#ignoresSlash = trailingSlash !== 'distinct';
    const routes = routesOf(operations, letterCase);
    const shapes = new Set(routes.map(({ method, path }) => shapeOf(method, path, path.endsWith('/'))));
    const routed = new Set<string>();
    for (const { method, pattern, path, operation } of routes) {
      if (routed.has(`${method} ${pattern}`)) continue;
      routed.add(`${method} ${pattern}`);
      const hasTwin =
        this.#ignoresSlash && path.includes('{') && shapes.has(shapeOf(method, path, !path.endsWith('/')));
      this.#router.on(method as HTTPMethod, pattern, () => undefined, { operation, path, hasTwin });
    }
    this.#names = new OtherNames(routes.map(({ path }) => path));
    this.#hasSlashed = routes.some(({ path }) => path !== '/' && path.endsWith('/'));
  }

  /** The route that matches a path exactly, undefined if there is none; `malformed` if the path has invalid UTF-8. */
  find(method: string, path: string): Route | 'malformed' | undefined {
    const found = this.#router.find(method as HTTPMethod, path);
    if (found === null) return undefined;
    return (found.store as Route | null) ?? 'malformed';
  }

  /** Whether this route is all that a path without a dot means. */
  isAlone(path: string, { hasTwin, path: declared }: Route): boolean {
    return !hasTwin && (!path.endsWith('/') || declared.endsWith('/') || !this.#ignoresSlash);
  }

  /**
   * The operations of a path, without format suffixes: the one that matches, and unless it is declared exactly so, the one that
   * matches with, or without, a slash at the end. `/things/` is first of all `/things`, and `/things/{id}` with an empty id for routers
   * that allow one.
   */
  operationsOf(method: string, path: string, exact: Route | undefined): readonly ListedOperation[] {
    if (exact === undefined) {
      const mayHaveTwin = this.#ignoresSlash && (this.#hasSlashed || path.endsWith('/'));
      return mayHaveTwin ? this.#operationsAt(method, [twinOf(path)]) : [];
    }
    if (exact.path === path || this.isAlone(path, exact)) return [exact.operation];
    const twins = this.#operationsAt(method, [twinOf(path)]);
    const isEmptyParameter = path.endsWith('/') && !exact.path.endsWith('/');
    return isEmptyParameter ? [...twins, exact.operation] : [exact.operation, ...twins];
  }

  /** The operations that a router may run at a path with a dot in it, besides its own. */
  otherOperationsOf(method: string, path: string, exact: Route | undefined): readonly ListedOperation[] {
    if (!path.includes('.') || exact?.path === path) return [];
    return this.#names
      .of(path, exact?.path ?? '')
      .flatMap((name) => this.#operationsAt(method, [name, twinOf(name)]));
  }

  #operationsAt(method: string, paths: readonly string[]): readonly ListedOperation[] {
    return paths.flatMap((path) => {
      const route = this.find(method, path);
      return route === undefined || route === 'malformed' ? [] : [route.operation];
    });
  }
}

/** The path with a slash at its end, or without the slashes that it has there. */
function twinOf(path: string): string {
  if (!path.endsWith('/')) return `${path}/`;
  let end = path.length;
  while (end > 1 && path[end - 1] === '/') end--;
  return path.slice(0, end);
}

/** Paths of different shapes never match one request, whatever slash ends them. */
function shapeOf(method: string, path: string, isSlashed: boolean): string {
  const segments = path.split('/').length - (path.endsWith('/') ? 1 : 0);
  return `${method} ${segments} ${isSlashed}`;
}

/** Longer than any path that `normalise` lets through. */
const MAX_PARAMETER_LENGTH = 1_000_000;

/**
 * A parameter longer than the router's default of 100 characters, or one that is not UTF-8, would turn a request for an
 * expensive operation into an unlisted one. Long parameters are allowed; invalid UTF-8 matches a route without an operation.
 */
function createRouter() {
  return FindMyWay({ caseSensitive: true, maxParamLength: MAX_PARAMETER_LENGTH, onBadUrl: () => undefined });
}

/** Every route, in the order of precedence. */
function routesOf(operations: readonly ListedOperation[], letterCase: PathProfile['case']) {
  // Of paths that differ only in letter case, the one with the strictest access comes first and is kept, then the most expensive one.
  const inOrder = operations.toSorted(
    (one, other) => STRICTNESS[other.access] - STRICTNESS[one.access] || other.cost - one.cost,
  );
  const declared = inOrder.flatMap((operation) => {
    const path = inCase(operation.path, letterCase);
    const pattern = routePattern(path);
    return pattern === undefined ? [] : [{ method: operation.method, pattern, path, operation }];
  });
  // HEAD asks for a GET without its body (RFC 9110 section 9.3.2), so it has the GET's cost.
  const heads = declared
    .filter(({ method }) => method === 'GET')
    .map((route) => ({ ...route, method: 'HEAD' }));
  return [...declared, ...heads];
}

/** Whom an access refuses: a Person-only operation more callers than one for any caller. */
export const STRICTNESS: Readonly<Record<Access, number>> = { public: 0, caller: 1, person: 2 };

/**
 * `/v3/files/{name}.{format}` in the syntax of find-my-way; undefined for a path that no request target can have. Its syntax is
 * escaped in literals, such as the colon in `/things/{id}:cancel`.
 */
function routePattern(path: string): string | undefined {
  const literals = path.replaceAll(/\{[^{}]*\}/g, '');
  if (/[?#*{}]/.test(literals)) return undefined;
  let count = 0;
  const segments = path.split('/').map((segment) => {
    const isWhole = /^\{[^{}]*\}$/.test(segment);
    const parts = segmentParts(segment).map((part, index) =>
      isParameter(index) ? part : decodedLiteral(part),
    );
    const patterns = parts.map((part, index) => {
      if (!isParameter(index)) return part.replaceAll(':', '::');
      return isWhole ? `:p${count++}` : `:p${count++}(${parameterExpression(parts.slice(index + 1))})`;
    });
    return patterns.join('');
  });
  return segments.join('/');
}
