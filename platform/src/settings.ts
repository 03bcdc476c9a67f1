import type { DatabaseSettings } from './database/connect.ts';
import { isHttpUrl, OptionError } from './program/failure.ts';

export interface DeliverySettings {
  /** Timeout of one attempt, from the name lookup to the last byte of the response. */
  readonly timeoutMs: number;
  /** The first retry follows after one to two times this delay. The delay then doubles with each retry. */
  readonly retryBaseSeconds: number;
  readonly maxAttempts: number;
  /** A subscription is paused when its endpoint has failed for this long without a success. */
  readonly pauseAfterSeconds: number;
  /** How often one delivery is attempted for a subscription that is paused because its endpoint fails. */
  readonly probeSeconds: number;
  /** Maximum number of concurrent attempts. One subscription may use an eighth of the free ones. */
  readonly concurrency: number;
  /** Also deliver to http, loopback and private addresses. */
  readonly allowPrivate: boolean;
}

export interface PlatformOptions {
  readonly host: string;
  /** 0 selects a free port. */
  readonly port: number;
  readonly logLevel?: string;
  /** Prefix of a problem's `type`. */
  readonly baseUrl?: string;
  /** Default: PostgreSQL in this process, in memory. */
  readonly database?: DatabaseSettings;
  /** Fill an empty database with demo data. */
  readonly seed?: boolean;
  /** Serve `POST /v3/platform/event-triggers`, which creates made-up events. */
  readonly triggers?: boolean;
  readonly pageTokenLifetimeSeconds?: number;
  readonly snapshotLifetimeSeconds?: number;
  readonly deliveries?: Partial<DeliverySettings>;
  /** Time between opening a payable and its payment. */
  readonly settlementSeconds?: number;
  /** How often to check for jobs whose process has died. */
  readonly sweepSeconds?: number;
  readonly now?: () => Date;
}

export type PlatformSettings = Required<Omit<PlatformOptions, 'deliveries'>> & {
  readonly deliveries: DeliverySettings;
};

/**
 * Every setting with its default. An embedded database means development, so demo data, made-up events and deliveries to
 * this machine are on by default. With PostgreSQL they are off by default.
 */
export function settleOptions(options: PlatformOptions): PlatformSettings {
  const database = options.database ?? { kind: 'memory' };
  const isDevelopment = database.kind !== 'postgres';
  return {
    logLevel: 'warn',
    baseUrl: 'https://api.example.com',
    seed: isDevelopment,
    triggers: isDevelopment,
    // Long enough to page through a list by hand, too short to store a token (contract section 4.1 rule 7).
    pageTokenLifetimeSeconds: 900,
    snapshotLifetimeSeconds: 600,
    settlementSeconds: 1,
    sweepSeconds: 5,
    now: () => new Date(),
    ...options,
    database,
    deliveries: {
      timeoutMs: 15_000,
      retryBaseSeconds: 5,
      // The delays double from 5 s, so the last attempt follows three to six hours after the first.
      maxAttempts: 12,
      pauseAfterSeconds: 3 * 24 * 3600,
      probeSeconds: 600,
      concurrency: 256,
      allowPrivate: isDevelopment,
      ...options.deliveries,
    },
  };
}

const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'];

/** A URL, or what the client of PostgreSQL takes as a Unix socket. It takes any other text as a database of the host `base`. */
const DATABASE = /^(\/|socket:|[a-z][a-z0-9+.-]*:\/\/)/i;

/**
 * The options that are read from the environment.
 *
 * @throws OptionError
 */
export function optionsFromEnv(env: NodeJS.ProcessEnv): Partial<PlatformOptions> {
  const url = env.DATABASE_URL;
  const path = env.WEIR_PLATFORM_DATA_DIR;
  const logLevel = env.WEIR_LOG_LEVEL;
  if (url && !DATABASE.test(url))
    throw new OptionError('DATABASE_URL is not a URL: give one such as postgres://db.example.com:5432/weir');
  if (logLevel && !LOG_LEVELS.includes(logLevel))
    throw new OptionError(`WEIR_LOG_LEVEL ${logLevel} is not a level: give one of ${LOG_LEVELS.join(', ')}`);
  const isOn = (name: string) => readSwitch(name, env[name]);
  return {
    ...(path && { database: { kind: 'directory', path } as const }),
    ...(url && { database: { kind: 'postgres', url } as const }),
    ...(env.WEIR_PLATFORM_SEED && { seed: isOn('WEIR_PLATFORM_SEED') }),
    ...(env.WEIR_PLATFORM_TRIGGERS && { triggers: isOn('WEIR_PLATFORM_TRIGGERS') }),
    ...(env.WEIR_PLATFORM_ALLOW_PRIVATE_WEBHOOKS && {
      deliveries: { allowPrivate: isOn('WEIR_PLATFORM_ALLOW_PRIVATE_WEBHOOKS') },
    }),
    ...(env.WEIR_BASE_URL && { baseUrl: toBaseUrl(env.WEIR_BASE_URL) }),
    ...(logLevel && { logLevel }),
  };
}

function toBaseUrl(text: string): string {
  if (isHttpUrl(text)) return text;
  throw new OptionError(`WEIR_BASE_URL ${text} is not an http or https URL`);
}

function readSwitch(name: string, value = ''): boolean {
  if (['true', '1'].includes(value)) return true;
  if (['false', '0'].includes(value)) return false;
  throw new OptionError(`${name} is ${value}: give true or false`);
}
