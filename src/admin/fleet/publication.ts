import type { Ignored } from '../../facts/ignored.ts';
import { parsed } from '../../facts/message-bounds.ts';
import {
  readBesideWindows,
  readWindow,
  type Summary,
  type WindowSummary,
} from '../../observe/usage/talkers.ts';
import type { Window } from '../../observe/usage/windows.ts';
import { hasPulse, type Pulse, readPulse } from './pulse.ts';

/** What a replica publishes about its requests, and about itself. */
export interface Publication {
  /** Undefined for a replica of another version of Weir. */
  readonly pulse: Pulse | undefined;
  /** Unix time by the clock of Redis. */
  readonly takenAtMs: number;
  /** What it counted in a window; undefined if that cannot be read. */
  summaryOf(window: Window): Promise<WindowSummary | undefined>;
}

/** The members of a publication, in their order in the text. Replicas of earlier versions write the same order. */
const MEMBERS = ['10s', '1m', '10m', 'organizationOf', 'trends', 'pulse'] as const;

export function textOf(summary: Summary, pulse: Pulse): string {
  return JSON.stringify({ ...summary, pulse });
}

/**
 * What another replica published. While a console is open, a replica reads the texts of all others every second, so the counts of a window
 * are read when somebody asks for that window. Undefined for a text that is no publication.
 *
 * @param ignored counts a pulse, or a window, that cannot be read
 */
export function readPublication(
  text: string,
  nowMs: number,
  ignored: Pick<Ignored, 'add'>,
): Publication | undefined {
  const members = membersOf(text);
  const published = members(['pulse']);
  if (typeof published !== 'object' || published === null) return undefined;
  const pulse = readPulse(published, nowMs, ignored);
  if (pulse === undefined && hasPulse(published)) ignored.add('form');
  let rest: ReturnType<typeof readBesideWindows>;
  return {
    pulse,
    takenAtMs: pulse?.takenAtMs ?? nowMs,
    async summaryOf(window) {
      rest ??= readBesideWindows(members(['organizationOf', 'trends']));
      const summary = rest && readWindow(members([window]), window, rest);
      if (summary === undefined) ignored.add('form');
      return summary;
    },
  };
}

/** Returns a function that reads some members of a publication. Its value has at least these; it is undefined for a text that is not JSON. */
export function membersOf(text: string): (wanted: readonly (typeof MEMBERS)[number][]) => unknown {
  const starts = startsOf(text);
  if (starts === undefined) return () => parsed(text);
  return (wanted) => {
    const parts = wanted.map((name) => {
      const place = MEMBERS.indexOf(name);
      return text.slice((starts[place] ?? 0) + 1, starts[place + 1]);
    });
    // Parts that begin within a member are no JSON.
    return parsed(`{${parts.join(',')}}`) ?? parsed(text);
  };
}

/**
 * Where the brace or comma before each member is, and the last brace. Undefined for a text that another version, or another program, has
 * written.
 */
function startsOf(text: string): readonly number[] | undefined {
  if (!text.startsWith('{"10s":{')) return undefined;
  const starts = [0];
  for (const name of MEMBERS.slice(1)) {
    // Not within a string: JSON has a backslash before each quote there.
    const at = text.indexOf(`,"${name}":{`, starts.at(-1));
    if (at < 0) return undefined;
    starts.push(at);
  }
  return [...starts, text.length - 1];
}
