import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { type GeneratedLog, linesOf, seededRandom } from './generated-log.ts';

/** Writes a log: `tsx bench/replay/generate.ts FILE [LINES] [ACCOUNTS] [HOURS] [LIMIT]`. */
const [file = 'access.log', lines = '1000000', accounts = '5000', hours = '24', limit = '25'] =
  process.argv.slice(2);
const log: GeneratedLog = {
  lines: Number(lines),
  accounts: Number(accounts),
  startMs: Date.UTC(2026, 10, 20),
  spanMs: Number(hours) * 3_600_000,
  random: seededRandom(1),
  limit: Number(limit),
};
const stream = createWriteStream(file);
let text = '';
for (const line of linesOf(log)) {
  text += line;
  if (text.length > 1_000_000) {
    if (!stream.write(text)) await once(stream, 'drain');
    text = '';
  }
}
stream.end(text);
await once(stream, 'finish');
