import type { Access, OperationKind } from '../../domain/operation.ts';
import type { Operation } from '../../stages/request-context.ts';

/** More than any API has; a log is input. */
const MOST_KEPT = 50_000;

/** The operations that a log names. The same operation is always the same object. */
export class LoggedOperations {
  #byName = new Map<string, Operation>();

  of(id: string, kind: OperationKind, access: Access): Operation {
    const name = `${kind} ${access} ${id}`;
    let operation = this.#byName.get(name);
    if (operation === undefined) {
      if (this.#byName.size >= MOST_KEPT) this.#byName = new Map();
      operation = { id, kind, access, cost: 1, listed: true, ...placeOf(id) };
      this.#byName.set(name, operation);
    }
    return operation;
  }
}

/** An operation without an id is named by its method and path. */
function placeOf(id: string): { readonly method?: string; readonly path?: string } {
  const [, method, path] = /^([A-Z]+) (\/.*)$/.exec(id) ?? [];
  return method === undefined || path === undefined ? {} : { method, path };
}
