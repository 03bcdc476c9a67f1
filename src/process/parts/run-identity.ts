import { revocationEvents } from '../../admin/facts/fact-events.ts';
import type { Identities } from '../../config/files/identities/parse-identities.ts';
import type { FactSharing } from '../../facts/fact-listener.ts';
import { FollowedFacts } from '../../facts/followed-facts.ts';
import { Revocations } from '../../facts/revocations.ts';
import type { IdentityObserver } from '../../identity/identity-observer.ts';
import type { Credential } from '../../identity/identity-source.ts';
import { openIdentity } from '../../identity/open-identity.ts';
import type { Changes } from '../../observe/log/noticed-changes.ts';
import type { Configuration } from '../configuration.ts';

/** Identities that receive revocations while the gateway runs. */
export function runIdentity(
  configuration: Configuration,
  sharing: FactSharing,
  observer: IdentityObserver,
  changes: Changes,
) {
  const { settings } = configuration;
  const reporting = { observer, log: sharing.log };
  const revocations = new Revocations(() => sharing.clock.nowMs());
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
  if (sharing.store !== undefined) observer.revocationsSubscribed(false);
  const followed = new FollowedFacts(revocations, sharing, revocationEvents(revocations, changes, observer));
  return {
    ...identity,
    /** Those that are accepted besides bearer tokens. */
    credentials,
    /** Replaces the identities of one of the credentials, after a reload of its file. */
    replaceCredential: (index: number, identities: Identities) => own[index]?.replaceIdentities(identities),
    /** The revocations of all replicas. */
    revocations: followed,
    close: () => followed.close(),
  };
}
