/** Contract section 8.1: reads and writes have buckets of their own; OPTIONS has none. */
export type OperationKind = 'read' | 'write';
