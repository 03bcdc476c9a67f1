import { type StoreObserver, silentObserver } from '../../observer.ts';
import type { MessageRecord } from '../../shared-store.ts';
import { openAnyLink, type RemoteStoreSettings } from '../connection/link.ts';
import type { WrongTypeFound } from './read-shared.ts';
import { RedisRecord } from './record.ts';

/** How long `openRecord` tries to reach Redis. */
const CONNECT_MS = 5_000;
const RETRY_MS = 100;

/** Calls `use` with the record of a channel. Rejects if Redis cannot be reached within `connectMs`, or refuses. */
export async function openRecord<T>(
  settings: RemoteStoreSettings,
  channel: string,
  use: (record: MessageRecord) => Promise<T>,
  connectMs = CONNECT_MS,
  wrongTypeFound: WrongTypeFound = () => {},
): Promise<T> {
  let refusal: string | undefined;
  let problem: string | undefined;
  const observer: StoreObserver = {
    ...silentObserver,
    connectionFailed(reason, message) {
      problem = message;
      if (reason === 'auth') refusal = message;
    },
  };
  const link = openAnyLink(settings, { ready() {}, lost() {} }, observer);
  const giveUpMs = performance.now() + connectMs;
  try {
    for (;;) {
      const isReady = await link.client.ping().then(
        () => true,
        (error: Error) => {
          problem ??= error.message;
        },
      );
      if (isReady) return await use(new RedisRecord(link.client, channel, wrongTypeFound));
      if (refusal !== undefined || performance.now() >= giveUpMs) throw new Error(refusal ?? problem);
      await new Promise((resume) => setTimeout(resume, RETRY_MS));
    }
  } finally {
    link.close();
  }
}
