import type { ShownBlock } from '../../admin/facts/block-api.ts';
import { looksLikeAddress, rangeOf } from '../../domain/network.ts';
import { BLOCK_SCOPES, BLOCKED, type BlockScope } from '../../facts/blocks.ts';
import { CommandError } from '../../process/failure.ts';
import { isBlock } from '../admin-answers.ts';
import { askAdmin } from '../admin-client.ts';
import { print } from '../print.ts';
import { readAll, reasonOf, type SetOptions, textOf } from './limit.ts';

interface BlockOptions extends SetOptions {
  readonly scope?: string;
}

/** `weir limit block acct_7 --for 1h --why leak` */
export async function block(id: string, options: BlockOptions): Promise<void> {
  const scope = scopeOf(options) ?? (looksLikeAddress(id) ? 'address' : 'account');
  const body = { for: options.for ?? '1h', ...reasonOf(options), ...(options.force && { force: true }) };
  const made = (await askAdmin(options, pathOf(scope, id), isBlock, { method: 'PUT', body })) as ShownBlock;
  print(textOf(made), ...(made.notes ?? []));
}

/** `weir limit unblock acct_7 --why "found it"`. Without a scope, everybody of that name. */
export async function unblock(id: string, options: BlockOptions): Promise<void> {
  const scope = scopeOf(options);
  const blocked = (await readAll(options)).filter(
    (one): one is ShownBlock =>
      one.bucket === BLOCKED && [id, rangeOf(id)].includes(one.id) && (scope ?? one.scope) === one.scope,
  );
  if (blocked.length === 0) throw new CommandError(`${id} is not blocked: weir limit list shows who is.`);
  const reason = new URLSearchParams(reasonOf(options));
  for (const one of blocked) {
    const path = `${pathOf(one.scope, one.id)}?${reason}`;
    const { notes = [] } = (await askAdmin(options, path, isBlock, { method: 'DELETE' })) as ShownBlock;
    print(`${one.scope} ${one.id} is no longer blocked.`, ...notes);
  }
}

function scopeOf({ scope }: BlockOptions): BlockScope | undefined {
  const known = BLOCK_SCOPES.find((one) => one === scope);
  if (scope !== undefined && known === undefined) {
    throw new CommandError(`--scope takes ${BLOCK_SCOPES.join(', ')}.`);
  }
  return known;
}

/** What a gateway answers may name a scope that this command does not know. */
function pathOf(scope: BlockScope, id: string): string {
  return `/blocks/${scope === 'address' ? 'addresses' : `${scope}s`}/${encodeURIComponent(id)}`;
}
