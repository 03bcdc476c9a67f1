import type { Payer } from '../caller.ts';
import type { Access } from '../operation.ts';

/** The sections of the limits file that override the limits of single owners. */
export const OVERRIDE_SECTIONS = ['accounts', 'organizations', 'addresses', 'principals'] as const;

export type OverrideSection = (typeof OVERRIDE_SECTIONS)[number];

/** Whose requests a limit counts together. */
export interface Scope {
  /** One owner, for the reference of the limits file. */
  readonly covers: string;
  /** The owners in a path of the admin port. */
  readonly plural: string;
  /** Undefined where every owner has the default. */
  readonly overrides: OverrideSection | undefined;
  /** The operations that are charged to it. */
  readonly access: readonly Access[];
  /** The id of the owner that this payer's requests are charged to; undefined if the scope does not apply. */
  ownerOf(payer: Payer): string | undefined;
}

/** Every scope, in the order of the RateLimit headers. A new scope is a row here. */
export const SCOPES = {
  account: {
    covers: 'one Account',
    plural: 'accounts',
    overrides: 'accounts',
    access: ['caller'],
    ownerOf: ({ account }) => account,
  },
  person: {
    covers: 'one Person on Person-only operations',
    plural: 'persons',
    overrides: undefined,
    access: ['person'],
    ownerOf: ({ principal }) => principal?.id,
  },
  address: {
    covers: 'one client address (IPv6: one /64 network) on public operations',
    plural: 'addresses',
    overrides: 'addresses',
    access: ['public'],
    ownerOf: ({ address }) => address,
  },
  organization: {
    covers: 'all Accounts of one Organization together',
    plural: 'organizations',
    overrides: 'organizations',
    access: ['caller'],
    ownerOf: ({ organization, hasOrganizationLimit }) => (hasOrganizationLimit ? organization : undefined),
  },
  principal: {
    covers: 'one principal, apart in each Organization that it acts for',
    plural: 'principals',
    overrides: 'principals',
    access: ['caller', 'person'],
    ownerOf: ({ principal }) => principal?.id,
  },
} as const satisfies Readonly<Record<string, Scope>>;

export type ScopeName = keyof typeof SCOPES;

export function scopeNamed(name: ScopeName): Scope {
  return SCOPES[name];
}

export function isScopeName(name: string): name is ScopeName {
  return Object.hasOwn(SCOPES, name);
}
