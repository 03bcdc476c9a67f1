import { loadSettings } from '../config/load.ts';
import {
  REMEMBERED_MS,
  readTarget,
  revocationChannel,
  writeRevocation,
} from '../identity/revocation-message.ts';
import { publish } from '../store/redis-channel.ts';
import { CommandError } from './failure.ts';

const MS_PER_HOUR = 3_600_000;

/** How long `weir revoke` asks to be remembered unless told. */
export const REMEMBERED_HOURS = String(REMEMBERED_MS / MS_PER_HOUR);

/** `weir revoke`: a token, or what a principal was given until now, no longer authenticates at any replica. */
export async function revoke(
  target: string,
  { config, hours }: { config: string; hours: string },
): Promise<void> {
  const rememberedMs = Number(hours) * MS_PER_HOUR;
  if (!(rememberedMs > 0)) throw new CommandError(`--hours ${hours} is not a number of hours above 0.`);
  const { store } = loadSettings(config, process.env);
  if (store.kind === 'memory') {
    throw new CommandError(
      `${config} names the memory store, and revocations travel through Redis: restart the gateway, or take the ` +
        'token out of the identities file, which is read again while it runs.',
    );
  }
  const atMs = Date.now();
  const revoked = readTarget(target);
  const untilMs = atMs + rememberedMs;
  const message = writeRevocation({ revoked, atMs, untilMs });
  const heard = await publish(store, revocationChannel(store.keyPrefix), message, untilMs).catch((error) => {
    throw new CommandError(`The revocation was not made: Redis does not take it (${error.message}).`);
  });
  const what = revoked.kind === 'token' ? 'The token' : `What ${target} was given until now`;
  process.stdout.write(
    `${what} is revoked for ${hours} hours. ${heardBy(heard, store.kind)} One that starts later hears of it then.\n`,
  );
}

function heardBy(count: number, kind: string): string {
  if (kind === 'cluster') return 'Every gateway that is connected has heard it.';
  return `${count} ${count === 1 ? 'gateway has' : 'gateways have'} heard it.`;
}
