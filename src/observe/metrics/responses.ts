import type { Registry } from 'prom-client';
import type { RequestContext } from '../../stages/request-context.ts';
import { Tally } from './tally.ts';

/** By the first digit of the status. */
const CLASSES = ['', '1xx', '2xx', '3xx', '4xx', '5xx'];

/** Counts the responses by status class, those of the upstreams apart from the gateway's own. */
export function responseCounter(registry: Registry): (context: RequestContext, status: number) => void {
  const responses = new Tally(registry, {
    name: 'weir_responses_total',
    help: "Responses to clients by status class: the gateway's own, and those of the upstreams.",
    labelNames: ['source', 'class'],
    known: knownResponses(),
  });
  return ({ refusal, upstreamStatus }, status) => {
    const statusClass = CLASSES[Math.floor(status / 100)];
    if (!statusClass) return;
    const isUpstreams = refusal === undefined && upstreamStatus !== undefined;
    responses.add(1, isUpstreams ? 'upstream' : 'gateway', statusClass);
  };
}

/** The gateway itself answers preflight requests (204) and those that it refuses. */
function* knownResponses(): Generator<readonly [string, string]> {
  for (const statusClass of CLASSES.slice(1)) yield ['upstream', statusClass];
  for (const statusClass of ['2xx', '4xx', '5xx']) yield ['gateway', statusClass];
}
