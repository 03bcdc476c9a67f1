import { Client, requestOf } from './client.ts';

/** How many are opened at once: a listener's backlog is no part of what is measured. */
const AT_ONCE = 100;

/** Opens connections that each get one answer and then stand idle. */
export async function openConnections(port: number, count: number, path: string): Promise<readonly Client[]> {
  const clients = Array.from({ length: count }, () => new Client(port));
  for (let first = 0; first < count; first += AT_ONCE) {
    const opening = clients.slice(first, first + AT_ONCE).map((client) => client.send(requestOf(1, path)));
    if ((await Promise.all(opening)).includes(0))
      throw new Error('a connection was closed before its answer');
  }
  return clients;
}
