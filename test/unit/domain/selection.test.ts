import { expect, test } from 'vitest';
import { selects } from '../../../src/domain/limits/selection.ts';

const OPERATION = {
  id: 'getThing',
  kind: 'read',
  access: 'caller',
  method: 'GET',
  path: '/v3/things/{thingId}/parts',
  tags: ['things', 'parts'],
} as const;

test.each([
  [{}, true],
  [{ kind: 'read' }, true],
  [{ kind: 'write' }, false],
  [{ operations: ['getThing'] }, true],
  [{ operations: ['other', 'getThing'] }, true],
  [{ operations: ['GET /v3/things/{id}/parts'] }, true],
  [{ operations: ['GET /v3/things/*/parts'] }, true],
  [{ operations: ['* /v3/things/*/parts'] }, true],
  [{ operations: ['GET /v3/*/*/*'] }, true],
  [{ operations: ['GET /v3/**'] }, true],
  [{ operations: ['GET /**'] }, true],
  [{ operations: ['GET /v3/things/{id}/parts/**'] }, true],
  [{ operations: ['POST /v3/**'] }, false],
  [{ operations: ['GET /v3/things/*'] }, false],
  [{ operations: ['GET /v3/things/x/parts'] }, false],
  [{ operations: ['GET /v3/thing/**'] }, false],
  [{ operations: ['GET /v3/things/*/parts/*/**'] }, false],
  [{ tags: ['parts'] }, true],
  [{ tags: ['other'] }, false],
  [{ tags: ['parts'], kind: 'write' }, false],
  [{ tags: ['parts'], operations: ['other'] }, false],
] as const)('%j: %s', (selection, isSelected) => {
  expect(selects(selection, OPERATION)).toBe(isSelected);
});

test('a request without a listed operation has neither a path nor tags', () => {
  const unlisted = { id: 'unlisted', kind: 'read', access: 'caller' } as const;
  expect(selects({}, unlisted)).toBe(true);
  expect(selects({ kind: 'read' }, unlisted)).toBe(true);
  expect(selects({ operations: ['GET /**'] }, unlisted)).toBe(false);
  expect(selects({ tags: ['a'] }, unlisted)).toBe(false);
});
