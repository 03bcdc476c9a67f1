/**
 * Writes a generated access log, which is the same for the same arguments:
 * `tsx bench/replay/generate.ts FILE [LINES] [ACCOUNTS] [ORGANIZATIONS] [HOURS] [LIMIT]`.
 * The demo's is `generated-access.log.gz 8000 9 3 24 25`.
 */
import { seededRandom, writeLog } from './generated-log.ts';

const [
  file = 'access.log',
  lines = '1000000',
  accounts = '5000',
  organizations = '200',
  hours = '24',
  limit = '25',
] = process.argv.slice(2);
await writeLog(file, {
  lines: Number(lines),
  accounts: Number(accounts),
  organizations: Number(organizations),
  startMs: Date.UTC(2026, 10, 20),
  spanMs: Number(hours) * 3_600_000,
  random: seededRandom(1),
  limit: Number(limit),
});
