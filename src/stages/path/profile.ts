/** Whether the upstream's router treats `/Things` and `/things` as the same path. */
export type LetterCase = 'insensitive' | 'sensitive';

/** What a request for `/things/` is, where only `/things` is declared. */
export type TrailingSlash = 'same' | 'refuse' | 'remove' | 'distinct';

/** How the upstream's router reads ambiguous paths. */
export interface PathProfile {
  readonly case: LetterCase;
  readonly trailingSlash: TrailingSlash;
  readonly duplicateSlashes: 'refuse' | 'merge' | 'distinct';
  readonly matrixParameters: 'refuse' | 'remove' | 'literal';
  /** Characters that case folding or NFKC turns into ASCII, such as the Kelvin sign. */
  readonly asciiForms: 'refuse' | 'distinct';
}
