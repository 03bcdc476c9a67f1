import { setTimeout } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { IdentityObserver } from '../identity/observer.ts';
import { type OpenedIdentity, openIdentity } from '../identity/open.ts';
import { readRevocation, revocationChannel, writeRevocation } from '../identity/revocation-message.ts';
import type { Revocations } from '../identity/revocations.ts';
import { listen } from '../store/redis/channel.ts';
import type { Configuration } from './configuration.ts';

export interface RunningIdentity extends Omit<OpenedIdentity, 'revocations'> {
  /** Resolves once revocations made before are in force, or after a second without Redis. */
  readonly ready: Promise<void>;
  close(): void;
}

/** Identities that hear of revocations while the gateway runs. */
export function runIdentity(
  configuration: Configuration,
  observer: IdentityObserver,
  log: Logger,
): RunningIdentity {
  const { settings } = configuration;
  const identity = openIdentity(settings.identity, configuration, { observer, log });
  return { ...identity, ...hear(settings.store, identity.revocations, observer, log) };
}

/** A replica without Redis serves all the same: it must start, and it hears what it missed once Redis is there. */
const LONGEST_WAIT_MS = 1_000;

function hear(
  store: Configuration['settings']['store'],
  revocations: Revocations,
  observer: IdentityObserver,
  log: Logger,
): { ready: Promise<void>; close(): void } {
  if (store.kind === 'memory') return { ready: Promise.resolve(), close() {} };
  observer.revocationsSubscribed(false);
  const channel = listen(store, revocationChannel(store.keyPrefix), {
    message(text) {
      const revocation = readRevocation(text);
      if (revocation === undefined) log.warn('a message of the revocation channel cannot be read');
      else if (revocations.add(revocation)) {
        observer.revoked();
        log.info(
          { kind: revocation.revoked.kind },
          revocation.isUndone ? 'a revocation was undone' : 'revoked',
        );
      }
    },
    connected(isConnected, problem) {
      observer.revocationsSubscribed(isConnected);
      if (!isConnected) log.warn({ problem }, 'revocations do not reach this replica until Redis is back');
    },
    missingFrom(record) {
      const all = revocations
        .remembered()
        .map((one) => ({ text: writeRevocation(one), untilMs: one.untilMs }));
      return all.filter(({ text }) => !record.has(text));
    },
    restored: (count) => log.info({ count }, 'revocations that Redis did not hold are recorded again'),
  });
  const late = setTimeout(LONGEST_WAIT_MS, undefined, { ref: false });
  return { ready: Promise.race([channel.subscribed, late]), close: () => channel.close() };
}
