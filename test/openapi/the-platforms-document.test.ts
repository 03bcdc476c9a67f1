import { fileURLToPath } from 'node:url';
import { createConfig, lint } from '@redocly/openapi-core';
import { beforeAll, describe, expect, test } from 'vitest';
import { parse } from '../../src/config/reader/parse-file.ts';
import { settingsSchema } from '../../src/config/settings/settings.ts';
import type { ListedOperation } from '../../src/operations/listed-operation.ts';
import { OperationFiles } from '../../src/operations/operation-files.ts';

const DOCUMENT = fileURLToPath(new URL('../../platform/openapi.yaml', import.meta.url));

describe("the platform's document", () => {
  let operations: readonly ListedOperation[];
  beforeAll(async () => {
    const { operations: settings } = parse(settingsSchema, '', 'weir.yaml').value;
    operations = await new OperationFiles({ ...settings, openapi: DOCUMENT }, 'weir.yaml').load();
  });

  test('has no linter warnings', async () => {
    const problems = await lint({ ref: DOCUMENT, config: await createConfig({ extends: ['recommended'] }) });
    expect(problems.map(({ ruleId, message }) => `${ruleId}: ${message}`)).toEqual([]);
  });

  // Contract section 4, and the expensive operations of section 8.1 rule 3.
  test.each([
    ['GET', '/v3/platform/webhook-event-types', 1],
    ['GET', '/v3/platform/operations/{operationId}', 1],
    ['POST', '/v3/payments/payables/{payableId}/open', 1],
    ['GET', '/v3/payments/payees', 1],
    ['GET', '/v3/search/payees', 1],
    ['GET', '/v3/compliance/vault-files', 1],
    ['POST', '/v3/platform/sessions', 10],
    ['POST', '/v3/compliance/tax-forms/{taxFormId}/submit', 5],
    ['POST', '/v3/platform/notifications/bulk-dismiss', 10],
  ])('has %s %s at %i points', (method, path, cost) => {
    expect(operations).toContainEqual(expect.objectContaining({ method, path, cost }));
  });

  test('every list takes pages of 1 to 100, audit logs of 1 to 25, and no query takes what is not declared', () => {
    for (const { id, rules } of operations) {
      expect([id, rules?.query.isOpen]).toEqual([id, false]);
      const size = rules?.query.byName.get('page[size]');
      if (size === undefined) continue;
      const most = id === 'listAuditLogs' ? 25 : 100;
      const passes = [0, 1, most, most + 1].map((count) => size.check(count) === undefined);
      expect([id, ...passes]).toEqual([id, false, true, true, false]);
    }
  });
});
