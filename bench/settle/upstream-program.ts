/**
 * A program: an API like OpenAI's that streams. The body of a request says what its answer costs. Writes a line for each stream that has ended
 * to the file of its second argument.
 */
import { openSync, writeSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { setTimeout } from 'node:timers/promises';
import type { Question, Stream } from './ledger.ts';

const [MIN_EVENTS, MAX_EVENTS, MAX_PAUSE_MS] = [5, 15, 1_000];
const [port, file] = process.argv.slice(2);
const streams = openSync(file ?? '/dev/null', 'a');

const server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
  answer(request, response).catch(() => response.destroy());
});
server.listen({ port: Number(port), host: '127.0.0.1', backlog: 16_384 });

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const question: Question = JSON.parse(await text(request));
  const { account, max_completion_tokens: reserved, final_cost: cost, sent_ms: sentMs } = question;
  const atMs = Date.now();
  response.once('close', () => {
    const id = `${request.headers['x-request-id'] ?? ''}`;
    const isWhole = response.writableFinished;
    const line: Stream = { id, account, reserved, cost, sentMs, atMs, endMs: Date.now(), isWhole };
    writeSync(streams, `${JSON.stringify(line)}\n`);
  });
  await stream(response, cost);
}

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
