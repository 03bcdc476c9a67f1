import type { Logger } from 'pino';
import type { SharedRevocations } from '../../admin/revocations/actions.ts';
import type { Identities } from '../../config/files/identities.ts';
import { SharedClock } from '../../facts/clock.ts';
import type { SharedObserver } from '../../facts/ignored.ts';
import { REVOCATIONS, shownTarget } from '../../facts/revocation-message.ts';
import { type Revocation, Revocations } from '../../facts/revocations.ts';
import type { Credential } from '../../identity/identity.ts';
import type { IdentityObserver } from '../../identity/observer.ts';
import { type OpenedIdentity, openIdentity } from '../../identity/open.ts';
import type { Changes } from '../../observe/log/changes.ts';
import type { SharedStore } from '../../store/shared-store.ts';
import type { Configuration } from '../configuration.ts';
import { runFacts } from './run-facts.ts';

export interface RunningIdentity extends Omit<OpenedIdentity, 'revocations'> {
  /** The credentials that are accepted besides bearer tokens. */
  readonly credentials: readonly Credential[];
  /** Replaces the identities of one of the credentials, after a reload of its file. */
  replaceCredential(index: number, identities: Identities): void;
  /** Resolves once revocations made before are in force, or after a second without Redis. */
  readonly ready: Promise<void>;
  /** Undefined where no other replica shares the store. */
  readonly revocations: SharedRevocations | undefined;
  close(): void;
}

/** Identities that receive revocations while the gateway runs. */
export function runIdentity(
  configuration: Configuration,
  shared: SharedStore | undefined,
  observer: IdentityObserver & SharedObserver,
  { log, changes }: Pick<Reported, 'log' | 'changes'>,
): RunningIdentity {
  const { settings } = configuration;
  const reporting = { observer, log };
  // In a Cluster the revocations may be at another node than the live limits, so they have a clock of their own.
  const clock = new SharedClock();
  const revocations = new Revocations(() => clock.nowMs());
  const identity = openIdentity(settings.identity, configuration, reporting, revocations);
  const own = settings.credentials.map((credential, index) => {
    const content = configuration.credentials[index];
    if (credential.identity === undefined || content === undefined) return undefined;
    return openIdentity(credential.identity, { ...content, settings }, reporting, revocations);
  });
  const credentials = settings.credentials.map((credential, index): Credential => {
    const { source, directory } = own[index] ?? identity;
    const { forward } = credential;
    return { field: credential.kind === 'header' ? credential.name : undefined, forward, source, directory };
  });
  const running = followRevocations(shared, revocations, { clock, observer, log, changes });
  return {
    ...identity,
    credentials,
    replaceCredential: (index, identities) => own[index]?.replaceIdentities(identities),
    ...running,
  };
}

interface Reported {
  readonly clock: SharedClock;
  readonly observer: IdentityObserver & SharedObserver;
  readonly log: Logger;
  readonly changes: Changes;
}

function followRevocations(
  shared: SharedStore | undefined,
  revocations: Revocations,
  { clock, observer, log, changes }: Reported,
): Pick<RunningIdentity, 'ready' | 'revocations' | 'close'> {
  if (shared === undefined) return { ready: Promise.resolve(), revocations: undefined, close() {} };
  observer.revocationsSubscribed(false);
  const apply = (revocation: Revocation): void => {
    if (!revocations.add(revocation)) return;
    observer.revoked();
    changes.info(membersOf(revocation), revocation.isRemoved ? 'revocation.undone' : 'revocation.made');
  };
  const running = runFacts(shared, {
    kind: REVOCATIONS,
    facts: revocations,
    words: { plural: 'revocations', metric: 'revocation' },
    clock,
    log,
    observer,
    apply,
    connected: (isConnected) => observer.revocationsSubscribed(isConnected),
    ended: (revocation) => changes.info(membersOf(revocation), 'revocation.ended'),
  });
  return {
    ...running,
    revocations: {
      apply,
      remembered: () => revocations.remembered(),
      ageSeconds: running.ageSeconds,
      withRecord: (use) => shared.withRecord(REVOCATIONS.topic, use),
    },
  };
}

function membersOf({ revoked, reason }: Revocation) {
  const { kind, target } = shownTarget(revoked);
  return { about: `${kind} ${target}`, kind, target, ...reason };
}
