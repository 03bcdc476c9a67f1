import type { FastifyInstance } from 'fastify';

/** The methods that each path of the application has. */
export interface ServedMethods {
  /** The methods of a request's path; empty for an unknown path. `*` is the whole server (RFC 9110 section 9.3.7). */
  at(path: string): readonly string[];
}

/** In the order of `Allow`. */
const ORDER = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'];

/** Collects the methods of the routes that are added from now on. */
export function collectMethods(app: FastifyInstance): ServedMethods {
  const routes: { readonly url: string; readonly pattern: RegExp; readonly methods: readonly string[] }[] =
    [];
  app.addHook('onRoute', ({ url, method }) => {
    const pattern = new RegExp(`^${url.replaceAll('.', '\\.').replaceAll(/:\w+/g, '[^/]+')}$`);
    routes.push({ url, pattern, methods: [method].flat() });
  });
  return {
    at(path) {
      const literal = routes.filter(({ url }) => url === path || path === '*');
      // A path that is written out wins over one with a parameter, as in OpenAPI.
      const here = literal.length > 0 ? literal : routes.filter(({ pattern }) => pattern.test(path));
      return ORDER.filter((method) => here.some(({ methods }) => methods.includes(method)));
    },
  };
}
