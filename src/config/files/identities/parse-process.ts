/** Parses large identities files in a process of its own, so that a reload neither delays requests nor leaves its memory behind. */
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { type Identities, parseIdentities } from './parse-identities.ts';
import { type IdentitiesTask, type Slice, SlicedIdentities } from './slices.ts';

/** A text of this length or less is parsed in less time than a process takes to start. */
const SMALL_CHARACTERS = 262_144;

const PROGRAM = fileURLToPath(new URL('./parse-child.js', import.meta.url));

/** Only the built program has the file that is run. From source, every file is parsed in the gateway's process. */
const IS_BUILT = import.meta.url.endsWith('.js');

/** Parses a file. The process runs until it is ended, so that all that it sent has arrived before. Rejects with a ConfigError that has every problem. */
export async function parseIdentitiesApart(text: string, file: string): Promise<Identities> {
  if (!IS_BUILT || text.length <= SMALL_CHARACTERS) return parseIdentities(text, file);
  const child = fork(PROGRAM, {
    serialization: 'advanced',
    execArgv: [],
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const sliced = new SlicedIdentities();
  try {
    return await new Promise((resolve, reject) => {
      const fail = (why: string) => reject(new Error(`the process that parses ${file} ${why}`));
      child.on('message', (slice: Slice) => {
        try {
          const identities = sliced.add(slice);
          if (identities !== undefined) resolve(identities);
        } catch (error) {
          reject(error);
        }
      });
      // Each of them, because one without a listener would end this process: what was sent to a process that has ended is one more.
      child.on('error', (error) => fail(`could not be run: ${error.message}`));
      child.once('exit', (code, signal) =>
        fail(`ended before it finished (${signal ?? `exit code ${code}`})`),
      );
      // A process that could not be started has no id, and may seem to be connected. Its error follows.
      if (child.pid !== undefined) child.send({ text, file } satisfies IdentitiesTask);
    });
  } finally {
    // Without a process id, the signal would go to this process and its whole group.
    if (child.pid !== undefined) child.kill();
  }
}
