import {
  DescriptorLevel,
  type DescriptorLimit,
  type DescriptorRule,
  headerNameOf,
  UNIT_SECONDS,
  type UnitName,
} from '../../../domain/limits/descriptors.ts';
import { ConfigError, type Origin, type Problem } from '../../problem.ts';
import { parse } from '../../reader/parse-file.ts';
import type { Finding, Path } from '../../reader/schema-check.ts';
import { didYouMean } from '../../reader/value-messages.ts';
import { descriptorsSchema, type WrittenRule } from './descriptors-schema.ts';

/** One file of rules. */
export interface DescriptorFile {
  readonly domain: { readonly name: string; readonly rules: DescriptorLevel };
  /** Where the domain is written. */
  readonly place: Origin;
  readonly rules: number;
  readonly warnings: readonly Problem[];
}

/** Parses a file in the format of envoyproxy/ratelimit. Throws a ConfigError with every problem. */
export function parseDescriptors(text: string, source: string): DescriptorFile {
  const { value, place } = parse(descriptorsSchema, text, source);
  const { domain, descriptors = [] } = value as {
    readonly domain: string;
    readonly descriptors?: readonly WrittenRule[];
  };
  const reader = new RuleReader();
  const rules = reader.level(descriptors, ['descriptors'], '');
  if (reader.findings.length > 0) throw new ConfigError(reader.findings.map(place));
  return {
    domain: { name: domain, rules },
    place: place({ path: ['domain'], message: '' }),
    rules: reader.count,
    warnings: reader.warnings.map(place),
  };
}

class RuleReader {
  readonly findings: Finding[] = [];
  readonly warnings: Finding[] = [];
  count = 0;

  level(written: readonly WrittenRule[], path: Path, prefix: string): DescriptorLevel {
    const level = new DescriptorLevel();
    const seen = new Set<string>();
    for (const [index, one] of written.entries()) {
      const at = [...path, `${index}`];
      const value = one.value === undefined || one.value === '' ? undefined : `${one.value}`;
      const label = `${prefix}${one.key}${value === undefined ? '' : `_${value}`}`;
      const identity = JSON.stringify([one.key, value]);
      if (seen.has(identity)) this.#refuse(at, `${label} is listed twice`);
      seen.add(identity);
      level.add(one.key, value, this.#rule(one, value, at, label));
    }
    return level;
  }

  #rule(written: WrittenRule, value: string | undefined, path: Path, label: string): DescriptorRule {
    this.count += 1;
    const { share_threshold: isShared = false, metadata, descriptors = [] } = written;
    if (isShared && !value?.includes('*')) {
      this.#refuse([...path, 'share_threshold'], 'needs a value with a "*"');
    }
    this.#warnOfMetrics(written, path);
    return {
      limit: this.#limit(written, [...path, 'rate_limit'], label),
      replaces: this.#replaced(written.rate_limit, [...path, 'rate_limit', 'replaces']),
      sharedValue: isShared ? value : undefined,
      metadata,
      below: this.level(descriptors, [...path, 'descriptors'], `${label}.`),
    };
  }

  #limit(rule: WrittenRule, path: Path, label: string): DescriptorRule['limit'] {
    const { rate_limit: limit } = rule;
    if (limit === undefined) return undefined;
    const { unit, requests_per_unit: requestsPerUnit, unlimited = false, name = '' } = limit;
    if (unlimited) {
      if (unit !== undefined) this.#refuse([...path, 'unit'], 'cannot be combined with unlimited');
      return 'unlimited';
    }
    const known = this.#unit(limit, path);
    if (requestsPerUnit === undefined)
      this.#refuse(
        [...path, 'requests_per_unit'],
        'is missing',
        'expected a whole number, or unlimited: true',
      );
    return {
      label,
      headerName: headerNameOf(label),
      name,
      unit: known,
      windowSeconds: UNIT_SECONDS[known],
      requestsPerUnit: requestsPerUnit ?? 0,
      mode: modeOf(rule),
      spendsRest: rule.spend_rest ?? false,
    };
  }

  #replaced({ name, replaces = [] }: NonNullable<WrittenRule['rate_limit']> = {}, path: Path) {
    return replaces.map((one, index) => {
      if (one.name === name) this.#refuse([...path, `${index}`], 'is the name of this limit itself');
      return one.name;
    });
  }

  #unit({ unit }: NonNullable<WrittenRule['rate_limit']>, path: Path): UnitName {
    const name = unit?.toLowerCase();
    if (name !== undefined && isUnit(name)) return name;
    const units = Object.keys(UNIT_SECONDS);
    const at = [...path, 'unit'];
    if (name === undefined) this.#refuse(at, 'is missing', `expected one of ${units.join(', ')}`);
    else this.#refuse(at, `must be one of ${units.join(', ')}, is "${unit}"`, didYouMean(name, units));
    return 'second';
  }

  #warnOfMetrics(written: WrittenRule, path: Path): void {
    for (const setting of ['detailed_metric', 'value_to_metric'] as const) {
      if (written[setting] !== true) continue;
      const message =
        'is ignored: the labels of metrics have no values of requests, because there can be any number of them';
      this.warnings.push({ path: [...path, setting], message });
    }
  }

  #refuse(path: Path, message: string, hint?: string): void {
    this.findings.push({ path, message, hint });
  }
}

function isUnit(name: string): name is UnitName {
  return Object.hasOwn(UNIT_SECONDS, name);
}

function modeOf({ shadow_mode, quota_mode }: WrittenRule): DescriptorLimit['mode'] {
  if (shadow_mode === true) return 'shadow';
  return quota_mode === true ? 'quota' : 'enforced';
}
