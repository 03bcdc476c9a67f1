import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { platformDocument } from '../../../scripts/platform-openapi/document.ts';

test("the platform's document is the one that its catalog makes (npm run docs writes it)", () => {
  expect(readFileSync('platform/openapi.yaml', 'utf8') === platformDocument()).toBe(true);
});
