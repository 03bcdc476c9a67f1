/**
 * A worker of a job queue: waits until the Account of a job has room for it, and then does the job.
 * `await whenAdmitted({ account: 'acct_1', operation: 'createReport', limits: ['jobs'] }, () => run(job))`
 */
import { setTimeout } from 'node:timers/promises';

const { WEIR_URL: url = 'http://127.0.0.1:9000', WEIR_DECISIONS_TOKEN: token } = process.env;

export async function whenAdmitted(question, work) {
  for (;;) {
    const headers = { Authorization: `Bearer ${token}` };
    const reply = await fetch(`${url}/decide`, { method: 'POST', headers, body: JSON.stringify(question) });
    const answer = await reply.json();
    if (answer.allowed) return work(answer);
    // Anything but a full limit will not pass later either: an unknown Account, a question that cannot be read.
    if (answer.status !== 429) throw new Error(answer.problem?.detail ?? answer.detail);
    await setTimeout(answer.retryAfterSeconds * 1000);
  }
}
