import type { Archive } from '../../shared-store.ts';
import { isRefusal } from '../scripts.ts';
import type { WrongTypeFound } from './read-shared.ts';
import type { SharedLink } from './shared-link.ts';

/** Longer values are not read whole: other programs may write to Redis. */
const LONGEST_BYTES = 8_388_608;

/** Opens the archive whose keys begin with `prefix`. Each key is written alone, so it does not matter in which slot of a Cluster it is. */
export function openArchive(shared: SharedLink, prefix: string, wrongTypeFound: WrongTypeFound): Archive {
  const link = shared.use();
  const { client } = link;
  const keyOf = (name: string) => `${prefix}:${name}`;
  /** Another program has written another type. The next write makes the key anew. */
  const replaceWrongType = async (key: string, error: unknown) => {
    if (!isRefusal(error) || !error.message.startsWith('WRONGTYPE')) return;
    wrongTypeFound(key);
    await client.del(key);
  };
  return {
    async append(name, bytes, lifeMs) {
      const key = keyOf(name);
      // A new key is set whole: one that is appended to takes up to twice the room. No key is ever without an end.
      if ((await client.set(key, bytes, 'PX', lifeMs, 'NX')) === 'OK') return bytes.length;
      try {
        return await client.append(key, bytes);
      } catch (error) {
        await replaceWrongType(key, error);
        throw error;
      }
    },
    read: (name) => client.getrangeBuffer(keyOf(name), 0, LONGEST_BYTES - 1),
    close: () => link.close(),
  };
}
