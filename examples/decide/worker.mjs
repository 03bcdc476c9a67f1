/**
 * A worker of a job queue: waits until the Account of a job has room for it, and then does the job.
 * `await whenAdmitted({ account: 'acct_1', operation: 'createReport', limits: ['jobs'] }, () => run(job))`
 *
 * With `hold: '10m'` in the question, the job's end is reported, so that limits on requests in flight apply. A job that knows what it has cost
 * sets `cost` of the answer: `(answer) => { answer.cost = 812; }`. A job that fails costs nothing.
 *
 * While Weir does not answer, the job waits as well. A question whose answer was lost may have spent its points.
 */
import { setTimeout } from 'node:timers/promises';

const { WEIR_URL: url = 'http://127.0.0.1:9000', WEIR_DECISIONS_TOKEN: token } = process.env;

/** The answer of Weir. Without one, its status is 503. */
const post = async (path, body) => {
  const headers = { Authorization: `Bearer ${token}` };
  const signal = AbortSignal.timeout(5_000);
  const request = new Request(url + path, { method: 'POST', headers, body: JSON.stringify(body), signal });
  const [status, text] = await fetch(request)
    .then(async (reply) => [reply.status, await reply.text()])
    .catch(() => [503]);
  return status < 500 ? { status, ...JSON.parse(text) } : { status };
};

export async function whenAdmitted(question, work) {
  for (;;) {
    const answer = await post('/decide', question);
    if (answer.allowed) return settled(answer, work);
    // Nothing else will pass later: an unknown Account, a question that cannot be read.
    if (answer.status !== 429 && answer.status < 500) throw new Error(answer.problem?.detail ?? answer.detail);
    // A month may be used up, and a timer of more than 24 days ends at once.
    const seconds = Math.min(answer.retryAfterSeconds || 1, 3600);
    // Not all workers ask again at once.
    await setTimeout(seconds * 1000 * (1 + Math.random() / 4));
  }
}

async function settled(answer, work) {
  try {
    return await work(answer);
  } catch (error) {
    answer.cost = 0;
    throw error;
  } finally {
    // What Weir does not get to know costs what was reserved.
    if (answer.receipt) await post('/settle', { receipt: answer.receipt, cost: answer.cost }).catch(() => undefined);
  }
}
