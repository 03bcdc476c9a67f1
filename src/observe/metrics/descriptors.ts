import type { Registry } from 'prom-client';
import { PlainHistogram, SECONDS } from './histogram.ts';
import { Tally } from './tally.ts';

const OUTCOMES = ['admitted', 'denied', 'uncounted', 'invalid'] as const;

const LIMIT_OUTCOMES = ['within', 'near', 'over', 'shadow_over'] as const;

/** How a limit took a request. */
export type LimitOutcome = (typeof LIMIT_OUTCOMES)[number];

/** Counts what Envoy's rate limit service decides. */
export interface DescriptorObserver {
  descriptorsDecided(outcome: (typeof OUTCOMES)[number], durationMs: number): void;
  /** @param label of a rule in the files, which are the only source of labels */
  descriptorLimited(domain: string, label: string, outcome: LimitOutcome): void;
}

/** Rules with labels of their own; further ones are counted together. */
const MOST_LABELS = 1_000;

/** The domain and the descriptor of those. */
const OTHER = ['other', 'other'] as const;

/** Metrics of Envoy's rate limit service. Their labels are those of the files, never of requests. */
export function descriptorMetrics(registry: Registry): DescriptorObserver {
  const decisions = new Tally(registry, {
    name: 'weir_descriptor_decisions_total',
    help: "Requests to Envoy's rate limit service, by outcome.",
    labelNames: ['outcome'],
    known: OUTCOMES.map((outcome) => [outcome]),
  });
  const limits = new Tally(registry, {
    name: 'weir_descriptor_limits_total',
    help: 'Limits that requests to the rate limit service were held against, by domain, rule and outcome.',
    labelNames: ['domain', 'descriptor', 'outcome'],
    known: LIMIT_OUTCOMES.map((outcome) => [...OTHER, outcome]),
  });
  const duration = new PlainHistogram(registry, {
    name: 'weir_descriptor_decision_duration_seconds',
    help: "Time from a request to Envoy's rate limit service to its answer.",
    buckets: SECONDS,
  });
  const labels = new Map<string, Set<string>>();
  let labelCount = 0;
  const isLabelled = (domain: string, label: string): boolean => {
    const known = labels.get(domain) ?? new Set();
    if (known.has(label)) return true;
    if (labelCount >= MOST_LABELS) return false;
    labelCount += 1;
    labels.set(domain, known.add(label));
    return true;
  };
  return {
    descriptorsDecided(outcome, durationMs) {
      decisions.add(1, outcome);
      duration.observe(durationMs / 1_000);
    },
    descriptorLimited(domain, label, outcome) {
      if (isLabelled(domain, label)) limits.add(1, domain, label, outcome);
      else limits.add(1, ...OTHER, outcome);
    },
  };
}
