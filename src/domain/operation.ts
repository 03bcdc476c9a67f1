/** Contract section 8.1: reads and writes have buckets of their own; OPTIONS has none. */
export type OperationKind = 'read' | 'write';

/** Who may call an operation, which decides the buckets that it is charged to: any caller, only a Person, or anybody. */
export type Access = 'caller' | 'person' | 'public';
