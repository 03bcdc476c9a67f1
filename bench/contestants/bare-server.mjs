/**
 * A program: `bare-server.mjs PORT UPSTREAM_PORT`. Node's http server and undici with nothing between them: what a proxy
 * on this stack costs before it does anything, and so what none can be faster than.
 */
import { createServer } from 'node:http';
import { Pool } from 'undici';

const [port, upstreamPort] = process.argv.slice(2);

const HOP_BY_HOP = new Set(['connection', 'host', 'keep-alive', 'transfer-encoding']);

const pool = new Pool(`http://127.0.0.1:${upstreamPort}`, { connections: 512, pipelining: 1 });

class Relay {
  #response;

  constructor(response) {
    this.#response = response;
  }

  onRequestStart() {}

  onResponseStart(_controller, status, headers) {
    const fields = [];
    for (const name in headers) if (!HOP_BY_HOP.has(name)) fields.push(name, headers[name]);
    this.#response.writeHead(status, fields);
  }

  onResponseData(_controller, chunk) {
    this.#response.write(chunk.latin1Slice(), 'latin1');
  }

  onResponseEnd() {
    this.#response.end();
  }

  onResponseError() {
    this.#response.destroy();
  }
}

const server = createServer((request, response) => {
  const { method, rawHeaders, url } = request;
  const headers = [];
  for (let index = 0; index < rawHeaders.length; index += 2) {
    if (!HOP_BY_HOP.has(rawHeaders[index].toLowerCase())) headers.push(rawHeaders[index], rawHeaders[index + 1]);
  }
  pool.dispatch({ path: url, method, headers, body: null }, new Relay(response));
});
server.listen(Number(port), '127.0.0.1');
