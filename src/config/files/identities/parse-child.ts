/** The program of the process that parse-process.ts starts to parse an identities file. Nothing imports it. */
import { promisify } from 'node:util';
import { type IdentitiesTask, type Slice, slicesOf } from './slices.ts';

process.on('message', async (task: IdentitiesTask) => {
  const send = promisify((slice: Slice, sent: (error: Error | null) => void) => process.send?.(slice, sent));
  // One slice is on its way at a time, so that the gateway is never busy with many in a row.
  for (const slice of slicesOf(task)) await send(slice);
});
