import type { Payer } from '../caller.ts';
import type { Access } from '../operation.ts';

/** The sections of the limits file that override the limits of single owners. */
export const OVERRIDE_SECTIONS = ['accounts', 'organizations', 'addresses', 'principals'] as const;

export type OverrideSection = (typeof OVERRIDE_SECTIONS)[number];

/** Whose requests a limit counts together. */
export interface Scope {
  /** One owner, in texts: `Account acct_1`. */
  readonly noun: string;
  /** One owner, for the reference of the limits file. */
  readonly covers: string;
  /** The owners in a path of the admin port. */
  readonly plural: string;
  /** Whether further limits can be counted per owner of this scope. */
  readonly isPer: boolean;
  /** The section with the limits of single owners. A Person is overridden as the principal that it is. */
  readonly overrides: OverrideSection;
  /** Whose plan sets its limits; undefined for nobody's. */
  readonly plan: 'account' | 'organization' | 'principal' | undefined;
  /** The operations that are charged to it. */
  readonly access: readonly Access[];
  /** Whether callers of one Account have different owners. */
  readonly isPerPrincipal: boolean;
  /** What the owners are called, if a log has too many of them to suggest a limit for each. */
  readonly many: string | undefined;
  /** Whether a 429 names the owner: a caller has not named its Organization. */
  readonly isNamed: boolean;
  /** The id of the owner that this payer's requests are charged to; undefined if the scope does not apply. */
  ownerOf(payer: Payer): string | undefined;
}

/** Every scope, in the order of the RateLimit headers. A new scope is a row here. */
export const SCOPES = {
  account: {
    noun: 'Account',
    covers: 'one Account',
    plural: 'accounts',
    isPer: true,
    overrides: 'accounts',
    plan: 'account',
    access: ['caller'],
    isPerPrincipal: false,
    many: undefined,
    isNamed: true,
    ownerOf: ({ account }) => account,
  },
  person: {
    noun: 'Person',
    covers: 'one Person on Person-only operations',
    plural: 'persons',
    isPer: false,
    overrides: 'principals',
    plan: undefined,
    access: ['person'],
    isPerPrincipal: true,
    many: 'Person',
    isNamed: true,
    ownerOf: ({ principal }) => principal?.id,
  },
  address: {
    noun: 'Address',
    covers: 'one client address (IPv6: one /64 network) on public operations',
    plural: 'addresses',
    isPer: true,
    overrides: 'addresses',
    plan: undefined,
    access: ['public'],
    isPerPrincipal: false,
    many: 'client',
    isNamed: true,
    ownerOf: ({ address }) => address,
  },
  organization: {
    noun: 'Organization',
    covers: 'all Accounts of one Organization together',
    plural: 'organizations',
    isPer: true,
    overrides: 'organizations',
    plan: 'organization',
    access: ['caller'],
    isPerPrincipal: false,
    many: undefined,
    isNamed: false,
    ownerOf: ({ organization, hasOrganizationLimit }) => (hasOrganizationLimit ? organization : undefined),
  },
  principal: {
    noun: 'Principal',
    covers: 'one principal, apart in each Organization that it acts for',
    plural: 'principals',
    isPer: true,
    overrides: 'principals',
    plan: 'principal',
    access: ['caller', 'person'],
    isPerPrincipal: true,
    many: 'principal',
    isNamed: true,
    ownerOf: ({ principal }) => principal?.id,
  },
  service: {
    noun: 'Service account',
    covers: 'one ServiceAccount, apart in each Organization that it acts for',
    plural: 'services',
    isPer: true,
    overrides: 'principals',
    plan: 'principal',
    access: ['caller'],
    isPerPrincipal: true,
    many: 'service account',
    isNamed: true,
    ownerOf: ({ principal }) => (principal?.type === 'ServiceAccount' ? principal.id : undefined),
  },
} as const satisfies Readonly<Record<string, Scope>>;

export type ScopeName = keyof typeof SCOPES;

export const SCOPE_NAMES = Object.keys(SCOPES) as ScopeName[];

export function scopeNamed(name: ScopeName): Scope {
  return SCOPES[name];
}

/** The owner, in texts for its callers: `Account acct_1`, or `The Organization`. */
export function ownerText(scope: ScopeName, id: string): string {
  const { noun, isNamed } = scopeNamed(scope);
  return isNamed ? `${noun} ${id}` : `The ${noun}`;
}

export function isScopeName(name: string): name is ScopeName {
  return Object.hasOwn(SCOPES, name);
}
