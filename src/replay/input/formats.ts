import type { RE2JS } from 're2js';
import type { OperationFinder, ReadLine } from './entry.ts';
import { foreignLog } from './foreign-log.ts';
import { albFields, combinedFields, jsonFields, type LogFields, type Mapping } from './text-formats.ts';
import { weirLog } from './weir-log.ts';

interface Preset {
  readonly fieldsOf: (line: string) => LogFields | undefined;
  readonly mapping: Mapping;
}

/** Formats of other gateways, with the meaning of their fields. */
const PRESETS = {
  json: {
    fieldsOf: jsonFields,
    mapping: {
      time: ['time'],
      method: ['method'],
      path: ['path'],
      status: ['status'],
      account: ['account'],
      organization: ['organization'],
      principal: ['principal'],
      address: ['address'],
      cost: ['cost'],
    },
  },
  combined: {
    fieldsOf: combinedFields,
    mapping: {
      time: ['time_local'],
      method: ['method'],
      path: ['uri'],
      status: ['status'],
      account: ['remote_user'],
      address: ['remote_addr'],
    },
  },
  envoy: {
    fieldsOf: jsonFields,
    mapping: { time: ['start_time'], method: ['method'], path: ['path'], status: ['response_code'] },
  },
  alb: {
    fieldsOf: albFields,
    mapping: {
      time: ['request_creation_time'],
      method: ['method'],
      path: ['uri'],
      status: ['elb_status_code'],
      address: ['client'],
    },
  },
} as const satisfies Record<string, Preset>;

export type Format = 'weir' | keyof typeof PRESETS;

export const FORMATS: readonly Format[] = ['weir', ...(Object.keys(PRESETS) as (keyof typeof PRESETS)[])];

/** A reader for the lines of a format, or a sentence if it could not find the Account of a request. */
export function lineReader(options: {
  readonly format: Format;
  /** Overrides the format's own mapping. */
  readonly mapping: Mapping;
  readonly accountPattern: RE2JS | undefined;
  readonly finder: OperationFinder | undefined;
}): ReadLine | string {
  const { format, mapping, accountPattern, finder } = options;
  if (format === 'weir') return weirLog(finder);
  const preset: Preset = PRESETS[format];
  const whole = { ...preset.mapping, ...mapping };
  if (whole.account === undefined && accountPattern === undefined) {
    return `The format ${format} has no field for the Account: name one with --map account=.field, or match it with --account-pattern.`;
  }
  return foreignLog({ fieldsOf: preset.fieldsOf, mapping: whole, accountPattern, finder });
}
