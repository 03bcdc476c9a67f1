/** The router of Express 5, which brings no types: as much of it as the tests use. */
declare module 'router' {
  interface RouterRequest {
    readonly method: string;
    url: string;
  }
  interface Router {
    (request: RouterRequest, response: object, next: (error?: unknown) => void): void;
    all(path: string, handler: () => void): Router;
    get(path: string, handler: () => void): Router;
  }
  function createRouter(options?: { caseSensitive?: boolean; strict?: boolean }): Router;
  export = createRouter;
}
