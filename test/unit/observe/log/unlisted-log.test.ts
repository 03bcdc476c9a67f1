import { pino } from 'pino';
import { expect, test } from 'vitest';
import { createUnlistedLog } from '../../../../src/observe/log/events.ts';

function logged(
  note: (write: (method: string, path: string) => void) => void,
): readonly { shape?: string }[] {
  const lines: { shape?: string }[] = [];
  const log = pino({}, { write: (line: string) => void lines.push(JSON.parse(line)) });
  note(createUnlistedLog(log));
  return lines;
}

test('each shape of an unlisted operation gets one line, whatever the ids in it', () => {
  const lines = logged((write) => {
    for (const id of ['th_1', 'th_2', '77']) write('GET', `/v3/things/${id}/open`);
    write('POST', '/v3/things/th_1/open');
  });
  expect(lines.map(({ shape }) => shape)).toEqual(['GET /v3/things/{}/open', 'POST /v3/things/{}/open']);
});

test('a scan over all paths fills neither memory nor log, and the log reports that it stops', () => {
  const word = (index: number) => [...String(index)].map((digit) => 'abcdefghij'[Number(digit)]).join('');
  const lines = logged((write) => {
    for (let index = 0; index < 5_000; index++) write('GET', `/${word(index)}`);
  });
  expect(lines).toHaveLength(1_001);
  expect(lines.at(-1)).toMatchObject({
    msg: 'further shapes of unlisted operations are counted, not logged',
  });
});
