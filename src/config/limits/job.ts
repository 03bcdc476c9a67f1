import type { Limits, OverrideMaps } from '../../domain/limits.ts';
import { parseLimits, parseOverrides } from './parse.ts';

/** One file of limits to parse. */
export interface Job {
  readonly kind: 'limits' | 'overrides';
  readonly text: string;
  /** Its name, for messages. */
  readonly file: string;
}

/** What a file of each kind gives; the first has the defaults as well. */
export type Parsed = Limits | OverrideMaps;

/** Parses where it is called. Throws a ConfigError that carries every problem. */
export function parseHere({ kind, text, file }: Job): Parsed {
  return kind === 'limits' ? parseLimits(text, file) : parseOverrides(text, file);
}
