import { catalog, namesOf } from '../catalog/catalog.ts';
import type { Handlers } from '../http/routes.ts';
import { readPage } from '../lists/page.ts';
import { resourceList } from '../lists/resource-list.ts';
import { findResource, resourceBody } from '../resources/resources.ts';
import { ok, pathId, type Services } from './services.ts';

/** A list and a read for every kind of the catalog, except operations, which have their own table and handlers. */
export function resourceHandlers({ sealer }: Services): Handlers {
  const kinds = Object.entries(catalog).filter(([kind]) => kind !== 'Operation');
  return Object.fromEntries(
    kinds.flatMap(([kind, entry]): [string, Handlers[string]][] => {
      const { list, read, parameter } = namesOf(kind, entry);
      const rules = entry.restartsList ? ({ onStaleToken: 'restart' } as const) : {};
      return [
        [list, async (call, db) => ok(await readPage(sealer, call, resourceList(db, call, kind), rules))],
        [
          read,
          async (call, db) =>
            ok(resourceBody(await findResource(db, call.caller, kind, pathId(call, parameter)))),
        ],
      ];
    }),
  );
}
