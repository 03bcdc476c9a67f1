/**
 * A program: an API like OpenAI's that streams. The body of a request says what its answer costs. Writes a line for each request that arrives to
 * the file of its second argument.
 */
import { openSync, writeSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import { setTimeout } from 'node:timers/promises';

/** What the body of a request has. */
interface Question {
  readonly max_completion_tokens: number;
  /** What its answer will cost: not a member of the real API. */
  readonly final_cost: number;
}

const [MIN_EVENTS, MAX_EVENTS, MAX_PAUSE_MS] = [5, 15, 1_000];
const [port, file] = process.argv.slice(2);
const arrivals = openSync(file ?? '/dev/null', 'a');

const server = createServer({ keepAliveTimeout: 60_000 }, async (request, response) => {
  let text = '';
  for await (const chunk of request) text += chunk;
  const { max_completion_tokens: reserved, final_cost: cost }: Question = JSON.parse(text);
  const { 'x-request-id': id, 'x-account-id': account } = request.headers;
  writeSync(arrivals, `${JSON.stringify({ id, account, reserved, cost, atMs: Date.now() })}\n`);
  await stream(response, cost).catch(() => undefined);
});
server.listen({ port: Number(port), host: '127.0.0.1', backlog: 16_384 });

async function stream(response: ServerResponse, cost: number): Promise<void> {
  response.setHeader('Content-Type', 'text/event-stream');
  const events = MIN_EVENTS + Math.floor(Math.random() * (MAX_EVENTS - MIN_EVENTS));
  for (let sent = 0; sent < events && !response.destroyed; sent++) {
    response.write(`data: ${JSON.stringify(chunkOf([{ index: 0, delta: { content: 'word ' } }], null))}\n\n`);
    await setTimeout(Math.random() * MAX_PAUSE_MS);
  }
  const usage = { prompt_tokens: 0, completion_tokens: cost, total_tokens: cost };
  response.write(`data: ${JSON.stringify(chunkOf([], usage))}\n\n`);
  response.end('data: [DONE]\n\n');
}

function chunkOf(choices: readonly object[], usage: object | null): object {
  const created = Math.floor(Date.now() / 1_000);
  return { id: 'chatcmpl-1', object: 'chat.completion.chunk', created, model: 'fake', choices, usage };
}
