/** The program of the parser thread, which parse-thread.ts starts. Nothing imports it. */
import { parentPort } from 'node:worker_threads';
import { lineOfPath } from '../../reader/yaml-text.ts';
import { type LimitsTask, sendParsed } from './parse-messages.ts';

parentPort?.on('message', ({ job, port }: LimitsTask) => {
  if (job.kind === 'line') port.postMessage({ line: lineOfPath(job.text, job.path) });
  else sendParsed(job, port);
  port.close();
  parentPort?.postMessage('sent');
});
