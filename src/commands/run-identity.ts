import { setTimeout } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { SharedRevocations } from '../admin/revocations/actions.ts';
import type { Identities } from '../config/files/identities.ts';
import type { Credential } from '../gateway/http/credentials.ts';
import type { IdentityObserver } from '../identity/observer.ts';
import { type OpenedIdentity, openIdentity } from '../identity/open.ts';
import { readRevocation, revocationChannel, writeRevocation } from '../identity/revocation-message.ts';
import type { Revocation, Revocations } from '../identity/revocations.ts';
import { listen } from '../store/redis/channel.ts';
import { openRecord } from '../store/redis/record.ts';
import type { Configuration } from './configuration.ts';

export interface RunningIdentity extends Omit<OpenedIdentity, 'revocations'> {
  /** The credentials that are accepted besides bearer tokens. */
  readonly credentials: readonly Credential[];
  /** Replaces the identities of one of the credentials, after a reload of its file. */
  replaceCredential(index: number, identities: Identities): void;
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
  const reporting = { observer, log };
  const identity = openIdentity(settings.identity, configuration, reporting);
  const own = settings.credentials.map((credential, index) => {
    const content = configuration.credentials[index];
    if (credential.identity === undefined || content === undefined) return undefined;
    return openIdentity(credential.identity, { ...content, settings }, reporting, identity.revocations);
  });
  const credentials = settings.credentials.map((credential, index): Credential => {
    const { source, directory } = own[index] ?? identity;
    const { forward } = credential;
    return { field: credential.kind === 'header' ? credential.name : undefined, forward, source, directory };
  });
  const running = follow(settings.store, identity.revocations, observer, log);
  return {
    ...identity,
    credentials,
    replaceCredential: (index, identities) => own[index]?.replaceIdentities(identities),
    ...running,
  };
}

/** A replica starts without Redis, and receives the revocations that it missed once Redis is back. */
const LONGEST_WAIT_MS = 1_000;

function follow(
  store: Configuration['settings']['store'],
  revocations: Revocations,
  observer: IdentityObserver,
  log: Logger,
): Pick<RunningIdentity, 'ready' | 'revocations' | 'close'> {
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
