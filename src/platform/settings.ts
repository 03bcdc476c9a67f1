import type { DatabaseSettings } from './database/connect.ts';

export interface DeliverySettings {
  /** For one attempt, from the name lookup to the last byte of the answer. */
  readonly timeoutMs: number;
  /** The first retry comes after one to two of these; each further one after about twice as long. */
  readonly retryBaseSeconds: number;
  readonly maxAttempts: number;
  /** A subscription is paused when its endpoint has failed for so long without a success. */
  readonly pauseAfterSeconds: number;
  /** How often a subscription that was paused because its endpoint failed tries one delivery. */
  readonly probeSeconds: number;
  /** Attempts under way at once. One subscription takes at most an eighth of those that are free. */
  readonly concurrency: number;
  /** Deliver to http, loopback and private addresses too. */
  readonly allowPrivate: boolean;
}

export interface PlatformOptions {
  readonly host: string;
  /** 0 for any free port. */
  readonly port: number;
  readonly logLevel?: string;
  /** Prefix of a problem's `type`. */
  readonly baseUrl?: string;
  /** By default PostgreSQL inside this process, in memory. */
  readonly database?: DatabaseSettings;
  /** Fill an empty database with demo data. */
  readonly seed?: boolean;
  /** Serve `POST /v3/platform/event-triggers`, which makes events up. */
  readonly triggers?: boolean;
  readonly pageTokenLifetimeSeconds?: number;
  readonly snapshotLifetimeSeconds?: number;
  readonly deliveries?: Partial<DeliverySettings>;
  /** How long a payable that was opened takes to be paid. */
  readonly settlementSeconds?: number;
  /** How often to look for jobs whose process has died. */
  readonly sweepSeconds?: number;
  readonly now?: () => Date;
}

export type PlatformSettings = Required<Omit<PlatformOptions, 'deliveries'>> & {
  readonly deliveries: DeliverySettings;
};

/**
 * Every setting with its default. An embedded database means development: demo data, made-up events and
 * deliveries to this machine are then on unless they are switched off, and off with PostgreSQL.
 */
export function settleOptions(options: PlatformOptions): PlatformSettings {
  const database = options.database ?? { kind: 'memory' };
  const isDevelopment = database.kind !== 'postgres';
  return {
    logLevel: 'warn',
    baseUrl: 'https://api.example.com',
    seed: isDevelopment,
    triggers: isDevelopment,
    // Long enough to walk a list by hand, short enough that nobody stores one (contract section 4.1 rule 7).
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
      // The delays double from 5 s: the last attempt comes three to six hours after the first.
      maxAttempts: 12,
      pauseAfterSeconds: 3 * 24 * 3600,
      probeSeconds: 600,
      concurrency: 256,
      allowPrivate: isDevelopment,
      ...options.deliveries,
    },
  };
}

/** The options that a process takes from its environment. */
export function optionsFromEnv(env: NodeJS.ProcessEnv): Partial<PlatformOptions> {
  const url = env.DATABASE_URL;
  const path = env.WEIR_PLATFORM_DATA_DIR;
  const isOn = (name: string) => env[name] === 'true' || env[name] === '1';
  return {
    ...(path && { database: { kind: 'directory', path } as const }),
    ...(url && { database: { kind: 'postgres', url } as const }),
    ...(env.WEIR_PLATFORM_SEED && { seed: isOn('WEIR_PLATFORM_SEED') }),
    ...(env.WEIR_PLATFORM_TRIGGERS && { triggers: isOn('WEIR_PLATFORM_TRIGGERS') }),
    ...(env.WEIR_PLATFORM_ALLOW_PRIVATE_WEBHOOKS && {
      deliveries: { allowPrivate: isOn('WEIR_PLATFORM_ALLOW_PRIVATE_WEBHOOKS') },
    }),
    ...(env.WEIR_BASE_URL && { baseUrl: env.WEIR_BASE_URL }),
    ...(env.WEIR_LOG_LEVEL && { logLevel: env.WEIR_LOG_LEVEL }),
  };
}
