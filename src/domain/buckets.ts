import type { Payer } from './caller.ts';
import type { Access, OperationKind } from './operation.ts';

export const KINDS: readonly OperationKind[] = ['read', 'write'];

/** The sections of the limits file that override the limits of single owners. */
export const OVERRIDE_SECTIONS = ['accounts', 'organizations', 'addresses'] as const;

export type OverrideSection = (typeof OVERRIDE_SECTIONS)[number];

/** What all buckets of one scope have in common. */
export interface BucketScope {
  /** What one bucket counts, for the reference of the limits file. */
  readonly covers: string;
  /** The scope that the RateLimit headers name: contract section 8.1 rule 2 hides the Person's own. */
  readonly headerScope: 'account' | 'organization' | 'address';
  /** The owners in a path of the admin port. */
  readonly plural: string;
  /** Points per window, unless the limits file says otherwise. */
  readonly defaults: Readonly<Record<OperationKind, number>>;
  /** Undefined where every owner has the default. */
  readonly overrides: OverrideSection | undefined;
  /** Whether the limits file may switch the limit off. */
  readonly mayBeNone: boolean;
  /** The operations that are charged to it. */
  readonly access: Access;
  /** The id of the owner that this payer's requests are charged to; undefined if the scope does not apply. */
  ownerOf(payer: Payer): string | undefined;
}

/**
 * Every scope of buckets, in the order of the RateLimit headers; each has a read and a write bucket (contract
 * section 8.1). A new scope is a row here.
 */
export const SCOPES = {
  account: {
    covers: 'one Account',
    headerScope: 'account',
    plural: 'accounts',
    defaults: { read: 500, write: 250 },
    overrides: 'accounts',
    mayBeNone: false,
    access: 'caller',
    ownerOf: ({ account }) => account,
  },
  person: {
    covers: 'one Person on Person-only operations',
    headerScope: 'account',
    plural: 'persons',
    defaults: { read: 500, write: 250 },
    overrides: undefined,
    mayBeNone: false,
    access: 'person',
    ownerOf: ({ principal }) => principal?.id,
  },
  address: {
    covers: 'one client address (IPv6: one /64 network) on public operations',
    headerScope: 'address',
    plural: 'addresses',
    // A fifth of an Account's: nobody answers for an address.
    defaults: { read: 100, write: 50 },
    overrides: 'addresses',
    mayBeNone: false,
    access: 'public',
    ownerOf: ({ address }) => address,
  },
  organization: {
    covers: 'all Accounts of one Organization together',
    headerScope: 'organization',
    plural: 'organizations',
    defaults: { read: 2000, write: 1000 },
    overrides: 'organizations',
    mayBeNone: true,
    access: 'caller',
    ownerOf: ({ organization, hasOrganizationLimit }) => (hasOrganizationLimit ? organization : undefined),
  },
} as const satisfies Readonly<Record<string, BucketScope>>;

export type ScopeName = keyof typeof SCOPES;

/** The name of a bucket in the store, in the limits file, and in the `extensions` of a 429. */
export type BucketName = `${ScopeName}-${OperationKind}`;

/** One bucket of the table. */
export interface BucketDefinition {
  readonly name: BucketName;
  /** Its name in the RateLimit headers. */
  readonly headerName: string;
  readonly kind: OperationKind;
  readonly scopeName: ScopeName;
  readonly scope: BucketScope;
}

/** All buckets: scope by scope, reads before writes. */
export const BUCKETS: readonly BucketDefinition[] = (Object.keys(SCOPES) as ScopeName[]).flatMap(
  (scopeName) =>
    KINDS.map((kind) => ({
      name: `${scopeName}-${kind}` as const,
      headerName: `${SCOPES[scopeName].headerScope}-${kind}`,
      kind,
      scopeName,
      scope: SCOPES[scopeName],
    })),
);

const byName: ReadonlyMap<string, BucketDefinition> = new Map(BUCKETS.map((bucket) => [bucket.name, bucket]));

/** The row of a bucket's name. Throws where there is none: names are checked when files are read. */
export function bucketNamed(name: BucketName): BucketDefinition {
  const bucket = byName.get(name);
  if (bucket === undefined) throw new TypeError(`there is no bucket ${name}`);
  return bucket;
}

const chargedFor = (kind: OperationKind): Readonly<Record<Access, readonly BucketDefinition[]>> => {
  const withAccess = (access: Access) =>
    BUCKETS.filter((bucket) => bucket.kind === kind && bucket.scope.access === access);
  return { caller: withAccess('caller'), person: withAccess('person'), public: withAccess('public') };
};

const CHARGED = { read: chargedFor('read'), write: chargedFor('write') };

/** The buckets that an operation of this kind may be charged to. */
export function bucketsFor(kind: OperationKind, access: Access): readonly BucketDefinition[] {
  return CHARGED[kind][access];
}
