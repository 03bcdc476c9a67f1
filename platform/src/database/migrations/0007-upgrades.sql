-- Data of earlier versions, in the form that openapi.yaml describes.

-- A subscription that an earlier version paused because its endpoint failed is probed like any other.
update subscriptions set probe_at = updated_at, failing_since = coalesce(failing_since, updated_at)
where status = 'Paused' and paused_reason = 'EndpointFailing' and probe_at is null;

-- Triggered operations were resources, which nobody could read. The events that name them stay true.
insert into operations
  (id, type, account_id, principal_id, person_id, external_id, status, input, error, events, created_at, updated_at)
select
  id, 'Triggered', account_id, coalesce(person_id, account_id), person_id, external_id,
  case status when 'Created' then 'Pending' else status end,
  '{}',
  case status when 'Failed' then '{"code": "ServiceUnavailable", "detail": "The event was triggered."}'::jsonb end,
  jsonb_build_object('createdAt', to_char(created_at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')) || events,
  created_at, updated_at
from resources where kind = 'Operation' and account_id is not null;
delete from resources using operations where resources.kind = 'Operation' and operations.id = resources.id;

-- A Person belongs to an Account, and not to itself.
update resources set person_id = null where kind = 'Person';

-- An invoice names its payee, as the payable does that pays it.
update resources invoice set fields = invoice.fields || jsonb_build_object('payeeId', payable.fields -> 'payeeId')
from resources payable
where invoice.kind = 'Invoice' and not invoice.fields ? 'payeeId'
  and payable.kind = 'Payable' and payable.fields ->> 'invoiceId' = invoice.id and payable.fields ? 'payeeId';

-- What was triggered had none of the members of its kind.
update resources set fields = example.fields || (resources.fields - 'isTriggered')
from (values
  ('FundsMovement', '{"payableId":"payable_1001","amount":"120.50","currency":"EUR"}'),
  ('GroupMember', '{"groupId":"group_1001","payeeId":"payee_1001"}'),
  ('InternalAccount', '{"name":"Operating account","currency":"EUR"}'),
  ('Invoice', '{"payeeId":"payee_1001","amount":"120.50","currency":"EUR"}'),
  ('InvoicePayment', '{"amount":"120.50","currency":"EUR"}'),
  ('Mandate', '{"fundingSource":"DE89 3704 0044 0532 0130 00","singleUse":true}'),
  ('Payable', '{"payeeId":"payee_1001","amount":"120.50","currency":"EUR"}'),
  ('Payee', '{"name":"Ada Almeida"}'),
  ('PayrollSchedule', '{"cadence":"Monthly","firstPayDate":"2026-01-30"}'),
  ('Statement', '{"internalAccountId":"internalaccount_1001","periodFrom":"2026-01-01","periodTo":"2026-01-31"}'),
  ('Transaction', '{"internalAccountId":"internalaccount_1001","direction":"Debit","amount":"120.50","currency":"EUR"}'),
  ('Transfer', '{"internalAccountId":"internalaccount_1001","destination":"GB29 NWBK 6016 1331 9268 19","amount":"120.50","currency":"EUR"}'),
  ('BackgroundCheck', '{"payeeId":"payee_1001","packageName":"Standard"}'),
  ('DocumentTemplate', '{"name":"Contractor agreement"}'),
  ('InsuranceCoverage', '{"payeeId":"payee_1001","coverageType":"GeneralLiability","expiresOn":"2026-12-31"}'),
  ('InsuranceImport', '{"fileName":"coverages.csv","rows":120}'),
  ('InsuranceMonitor', '{"payeeId":"payee_1001"}'),
  ('SharedFileRequest', '{"payeeId":"payee_1001","subject":"Proof of address"}'),
  ('SignatureRequest', '{"documentTemplateId":"documenttemplate_1001","signers":2}'),
  ('VaultFile', '{"name":"contract-1.pdf"}'),
  ('AccountingClass', '{"name":"Marketing","connectionId":"accountingconnection_1001"}'),
  ('AccountingConnection', '{"system":"Ledgerly"}'),
  ('AccountingCustomer', '{"name":"Rowan & Sons","connectionId":"accountingconnection_1001"}'),
  ('AccountingItem', '{"name":"Freight","connectionId":"accountingconnection_1001"}'),
  ('AccountingVendor', '{"name":"Paper Mill","connectionId":"accountingconnection_1001"}'),
  ('Account', '{"name":"Harbour Books"}'),
  ('ApiKey', '{"name":"Nightly export","principalId":"svc_1","principalType":"ServiceAccount","hint":"wk_3fA9"}'),
  ('ComplianceEntity', '{"legalName":"Harbour Books Ltd","entityType":"Business","taxIdHint":"6789"}'),
  ('Notification', '{"subject":"Invoice INV-2600 was received"}'),
  ('NotificationSubscription', '{"topic":"Invoices","channel":"Email"}'),
  ('Organization', '{"name":"Quayside Group"}'),
  ('Role', '{"name":"Approver"}'),
  ('ServiceAccount', '{"name":"Bookkeeping sync"}')
) as text (kind, fields)
cross join lateral (select text.fields::jsonb) as example (fields)
where resources.kind = text.kind and resources.fields ? 'isTriggered';
update resources set fields = fields - 'isTriggered' where fields ? 'isTriggered';

-- The answers that are kept for repeated requests name the Account too. Subscriptions have a scope instead.
update idempotency_keys set body = (body::jsonb || jsonb_build_object('accountId', account_id))::json
where body::jsonb ?& array['id', 'events'] and not body::jsonb ?| array['accountId', 'scope'];
