import type { PriceOf } from './input/entry.ts';
import type { Tally } from './input/tally.ts';
import { MOST_TRIES, type Replay, type Retries } from './replay.ts';
import { counted, shownCount } from './shown.ts';

export interface Circumstances {
  readonly replay: Replay;
  readonly tally: Tally;
  readonly retries: Retries;
  readonly complete: boolean;
  /** Present if requests were priced again. */
  readonly priceOf: PriceOf | undefined;
  /** Whether the lines of the log have a cost. */
  readonly hasLoggedCosts: boolean;
}

/** The limitations of a replay's numbers, as sentences. Most important first. */
export function notesOn(circumstances: Circumstances): readonly string[] {
  return [
    completeness(circumstances),
    ...brokenFiles(circumstances.tally),
    retriesNote(circumstances),
    anonymousNote(circumstances.tally),
    latenessNote(circumstances.replay),
    resolutionNote(circumstances),
    costNote(circumstances),
    neverFitsNote(circumstances.replay),
  ].filter((note) => note !== undefined);
}

function completeness({ complete }: Circumstances): string | undefined {
  return complete
    ? undefined
    : 'The reading was interrupted: these numbers cover only the part of the log up to there.';
}

function brokenFiles({ brokenFiles: files }: Tally): readonly string[] {
  return files.map(({ file, problem }) => `${file} could not be read to its end (${problem}).`);
}

function retriesNote({ replay, retries }: Circumstances): string | undefined {
  const { refused, dropped, gaveUp } = replay;
  if (retries === 'drop') {
    return `The ${counted(dropped, 'request')} that the log shows as refused were left out, on the assumption that each was sent again and appears later (--retries drop).`;
  }
  if (retries === 'after') {
    return (
      `The ${counted(dropped, 'request')} that the log shows as refused were left out. What the replay refused was sent again after its Retry-After: ` +
      `${counted(replay.retries, 'retry').replace(/retrys$/, 'retries')}, and ${counted(gaveUp, 'request')} given up after ${MOST_TRIES} tries (--retries after).`
    );
  }
  if (refused.before === 0) return undefined;
  return (
    `The log has ${counted(refused.before, 'refused request')}. Refused clients usually retry, so it shows more requests than clients wanted to send. ` +
    'Each line counted as a request of its own; --retries drop leaves the refused ones out.'
  );
}

function anonymousNote({ anonymous }: Tally): string | undefined {
  if (anonymous === 0) return undefined;
  return `${counted(anonymous, 'request')} without an Account were left out.`;
}

function latenessNote({ late, requests }: Replay): string | undefined {
  if (late === 0) return undefined;
  const mostly = late * 100 > requests ? ' If the log is not in the order of time, sort it first.' : '';
  return `${counted(late, 'request')} were logged more than 10 s after their charge and were counted late.${mostly}`;
}

function resolutionNote({ tally, replay }: Circumstances): string | undefined {
  if (tally.hasFractions || replay.requests === 0) return undefined;
  return 'The times of this log are whole seconds: requests of one second count as simultaneous, so short bursts look fuller than they were.';
}

function costNote({ priceOf, hasLoggedCosts }: Circumstances): string | undefined {
  if (priceOf !== undefined || hasLoggedCosts) return undefined;
  return 'Each request costs 1 point: name an OpenAPI document with --operations, or settings with --config, for other prices.';
}

function neverFitsNote({ neverFits }: Replay): string | undefined {
  if (neverFits === 0) return undefined;
  return `${shownCount(neverFits)} of the refusals are of requests whose cost is above the bucket's limit. The gateway does not load such limits.`;
}
