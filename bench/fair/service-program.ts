/** A program: a service that works on some requests at once, each for a time, while later ones wait in order. */
import { createServer, type ServerResponse } from 'node:http';

const [port, places, workMs] = process.argv.slice(2).map(Number);
const waiting = new Set<ServerResponse>();
let atWork = 0;

const server = createServer({ keepAliveTimeout: 0 }, (request, response) => {
  request.resume();
  waiting.add(response);
  // A request whose client has gone before its turn is not worked on.
  response.once('close', () => waiting.delete(response));
  work();
});
server.listen({ port, host: '127.0.0.1', backlog: 16_384 });

function work(): void {
  for (const response of waiting) {
    if (atWork >= (places ?? 1)) return;
    waiting.delete(response);
    atWork++;
    setTimeout(() => {
      atWork--;
      response.setHeader('Content-Type', 'application/json').end('{"data":[]}');
      work();
    }, workMs);
  }
}
