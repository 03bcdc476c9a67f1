import { bucketKey } from '../../src/store/keys.ts';
import type { Charge } from '../../src/store/store.ts';

/** Points per second of an Account and of its Organization. */
export interface Limits {
  readonly account: number;
  readonly organization: number;
}

/** The buckets that a read is charged to, of one second each. */
export function twoBuckets(
  prefix: string,
  account: string,
  organization: string,
  limits: Limits,
): Charge['buckets'] {
  return [
    {
      key: bucketKey(prefix, organization, 'account-read', account),
      limit: limits.account,
      windowSeconds: 1,
    },
    {
      key: bucketKey(prefix, organization, 'organization-read', organization),
      limit: limits.organization,
      windowSeconds: 1,
    },
  ];
}
