import { expect, test } from 'vitest';
import { csvLine } from '../../../../src/admin/usage/past-routes.ts';

const lineOf = (id: string, points = 3) =>
  csvLine({
    scope: 'principal',
    id,
    day: '2026-11-25',
    operation: '@list',
    limit: 'month',
    points,
    requests: 2,
    refused: 1,
  });

test('a text in CSV that a spreadsheet would calculate has an apostrophe before it', () => {
  expect(lineOf('svc_1')).toBe("principal,svc_1,2026-11-25,'@list,month,3,2,1\r\n");
  for (const sign of ['=', '+', '-', '@'])
    expect(lineOf(`${sign}cmd|1`)).toBe(`principal,'${sign}cmd|1,2026-11-25,'@list,month,3,2,1\r\n`);
  expect(lineOf('=HYPERLINK("http://x/",A1)')).toMatch(
    /^principal,"'=HYPERLINK\(""http:\/\/x\/"",A1\)",2026/,
  );
});

test('a number below 0 stays a number: more was given back on a day than was charged', () => {
  expect(lineOf('svc_1', -5)).toMatch(/,month,-5,2,1\r\n$/);
});
