import { listed } from '../../config/reader/value-messages.ts';
import type { BlockScope } from '../../facts/blocks.ts';
import { ActionRefused } from '../action.ts';

interface UnknownDetails {
  readonly scope: BlockScope;
  readonly id: string;
  /** Whether the files list everybody. */
  readonly isListed: boolean;
  /** Similar ids of the scope. */
  readonly nearest: readonly string[];
  /** The other scopes that have the id. */
  readonly scopes: readonly BlockScope[];
}

/** Nobody is known to have this id. */
export class UnknownOwner extends ActionRefused {
  override readonly name = 'UnknownOwner';
  override readonly status = 404;
  override readonly details: object;

  constructor(unknown: UnknownDetails) {
    super(unknownText(unknown));
    const { isListed: _, ...details } = unknown;
    this.details = { code: 'unknown', ...details };
  }
}

/** That nobody has an id, and what was probably meant. */
function unknownText({ scope, id, isListed, nearest, scopes }: UnknownDetails): string {
  const fact = isListed
    ? `There is no ${scope} ${id}.`
    : `No ${scope} ${id} is known: this gateway cannot list every ${scope}, and has seen no request of this one in the last ten minutes.`;
  const others = scopes.length === 0 ? '' : ` ${id} is ${listed(scopes.map(withArticle))}.`;
  const similar = nearest.length === 0 ? '' : ` Did you mean ${listed(nearest)}?`;
  return `${fact}${others}${similar}`;
}

function withArticle(scope: BlockScope): string {
  return `${scope === 'principal' ? 'a' : 'an'} ${scope}`;
}
