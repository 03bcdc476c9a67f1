import type { FindResult } from '../admin/find/finder.ts';
import { CommandError } from '../process/failure.ts';
import { isFindResult } from './admin-answers.ts';
import { type AdminOptions, askAdmin } from './admin-client.ts';
import { print, printJson } from './print.ts';
import { tableLines } from './terminal/line.ts';

/** `weir find ID`: what has this id. The exit code is 1 if nothing has. */
export async function find(id: string, options: AdminOptions & { readonly json?: boolean }): Promise<void> {
  const result = (await askAdmin(options, `/find?q=${encodeURIComponent(id)}`, isFindResult)) as FindResult;
  if (options.json) printJson(result);
  else if (result.found.length > 0)
    print(...tableLines(result.found.map(({ kind, id, text }) => [kind, id, text])));
  else throw new CommandError(...unknownLines(result));
  if (result.found.length === 0) process.exitCode = 1;
}

function unknownLines({ q, nearest, mayExist }: FindResult): readonly string[] {
  const mayBe = mayExist
    ? ' This gateway cannot list all callers: an Account or principal that sent nothing in the last ten minutes may have it.'
    : '';
  return [`${q} is unknown.${mayBe}`, ...nearest.map(({ kind, id }) => `Similar: ${kind} ${id}`)];
}
