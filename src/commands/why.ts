import type { ShownRefusal } from '../admin/why/shown-refusal.ts';
import type { WhyAnswer } from '../admin/why/why-route.ts';
import { shownCount, shownTime } from '../domain/shown.ts';
import { CommandError } from '../process/failure.ts';
import { REQUEST_ID } from '../stages/request-context.ts';
import { isWhyAnswer } from './admin-answers.ts';
import { type AdminOptions, askAdmin } from './admin-client.ts';
import { print, printJson } from './print.ts';
import { type Line, tableLines } from './terminal/line.ts';

/** `weir why REQUEST-ID`: which limit refused a request, and who had used it up. */
export async function why(
  requestId: string,
  options: AdminOptions & { readonly json?: boolean },
): Promise<void> {
  if (!REQUEST_ID.test(requestId))
    throw new CommandError('A request id has at most 128 characters: letters, digits, `.`, `_` and `-`.');
  const answer = (await askAdmin(
    options,
    `/refusals/${encodeURIComponent(requestId)}`,
    isWhyAnswer,
  )) as WhyAnswer;
  if (options.json) printJson(answer);
  else for (const one of answer.refusals) print(...linesOf(one));
}

function linesOf(one: ShownRefusal): readonly Line[] {
  const { at, replica, text, principal, account, address } = one;
  const caller = principal === null ? `address ${address}` : `${principal} for Account ${account}`;
  return [
    [{ style: 'bold', text: `429 at ${shownTime(at)} UTC by ${replica}, to ${caller}` }],
    ...[one.sharedText ?? []].flat(),
    text,
    ...[one.limitText ?? []].flat(),
    ...fillLines(one),
    ...[one.unknownText ?? []].flat(),
  ];
}

function fillLines({ filledBy, filledText, limit: { counts } }: ShownRefusal): readonly Line[] {
  if (filledBy.length === 0) return [];
  const rows = filledBy.map(({ operation, principal, points, requests }) => [
    operation,
    principal ?? '-',
    shownCount(requests),
    ...(counts === 'points' ? [shownCount(points)] : []),
  ]);
  const heads = ['operation', 'principal', 'requests', ...(counts === 'points' ? ['points'] : [])];
  return ['', `${filledText}:`, ...tableLines([heads, ...rows])];
}
