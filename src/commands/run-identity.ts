import { setTimeout } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { SharedRevocations } from '../admin/revocations/actions.ts';
import type { IdentityObserver } from '../identity/observer.ts';
import { type OpenedIdentity, openIdentity } from '../identity/open.ts';
import { readRevocation, revocationChannel, writeRevocation } from '../identity/revocation-message.ts';
import type { Revocation, Revocations } from '../identity/revocations.ts';
import { listen } from '../store/redis/channel.ts';
import { openRecord } from '../store/redis/record.ts';
import type { Configuration } from './configuration.ts';

export interface RunningIdentity extends Omit<OpenedIdentity, 'revocations'> {
  /** Resolves once revocations made before are in force, or after a second without Redis. */
  readonly ready: Promise<void>;
  /** Undefined with the memory store. */
  readonly revocations: SharedRevocations | undefined;
  close(): void;
}

/** Identities that receive revocations while the gateway runs. */
export function runIdentity(
  configuration: Configuration,
  observer: IdentityObserver,
  log: Logger,
): RunningIdentity {
  const { settings } = configuration;
  const identity = openIdentity(settings.identity, configuration, { observer, log });
  return { ...identity, ...follow(settings.store, identity.revocations, observer, log) };
}

/** A replica starts without Redis, and receives the revocations that it missed once Redis is back. */
const LONGEST_WAIT_MS = 1_000;

function follow(
  store: Configuration['settings']['store'],
  revocations: Revocations,
  observer: IdentityObserver,
  log: Logger,
): Omit<RunningIdentity, keyof OpenedIdentity> & Pick<RunningIdentity, 'revocations'> {
  if (store.kind === 'memory') return { ready: Promise.resolve(), revocations: undefined, close() {} };
  observer.revocationsSubscribed(false);
  const name = revocationChannel(store.keyPrefix);
  const apply = (revocation: Revocation): void => {
    if (!revocations.add(revocation)) return;
    observer.revoked();
    const { revoked, isUndone } = revocation;
    log.info({ kind: revoked.kind }, isUndone ? 'a revocation was undone' : 'revoked');
  };
  const channel = listen(store, name, {
    message(text) {
      const revocation = readRevocation(text);
      if (revocation === undefined) log.warn('a message of the revocation channel cannot be read');
      else apply(revocation);
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
  return {
    ready: Promise.race([channel.subscribed, late]),
    revocations: {
      apply,
      remembered: () => revocations.remembered(),
      withRecord: (use) => openRecord(store, name, use),
    },
    close: () => channel.close(),
  };
}
