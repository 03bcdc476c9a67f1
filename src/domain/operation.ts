/** Contract section 8.1: reads and writes have buckets of their own; OPTIONS has none. */
export type OperationKind = 'read' | 'write';

/** Who may call an operation, which decides the buckets that it is charged to: any caller, only a Person, or anybody. */
export type Access = 'caller' | 'person' | 'public';

/**
 * How requests share an upstream. Requests of callers may use all of it. Public operations, and requests that are not charged (OPTIONS,
 * free operations), may use a part each.
 */
export const TRAFFICS = ['caller', 'public', 'uncharged'] as const;

export type Traffic = (typeof TRAFFICS)[number];
