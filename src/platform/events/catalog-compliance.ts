import type { CatalogResource, Scope } from './catalog.ts';

const ACCOUNT: readonly Scope[] = ['Account'];

/** Contract section 6.3, the compliance records. */
export const complianceCatalog: Readonly<Record<string, CatalogResource>> = {
  BackgroundCheck: {
    domain: 'compliance',
    scopes: ACCOUNT,
    events: {
      Created: 'A background check was ordered.',
      Sent: 'The background check was sent to the payee.',
      Submitted: 'The payee submitted the background check.',
      Completed: 'The background check completed.',
      Failed: 'The background check failed.',
    },
  },
  DocumentTemplate: {
    domain: 'compliance',
    scopes: ACCOUNT,
    events: { Created: 'A reusable e-signature template was created.' },
  },
  InsuranceCoverage: {
    domain: 'compliance',
    scopes: ACCOUNT,
    events: {
      Updated: 'An insurance coverage record changed.',
      Created: 'An insurance coverage record was created.',
    },
  },
  InsuranceImport: {
    domain: 'compliance',
    scopes: ACCOUNT,
    events: {
      Created: 'A bulk import of coverage records was created.',
      Processed: 'The import was processed.',
      Submitted: 'The import was submitted.',
    },
  },
  InsuranceMonitor: {
    domain: 'compliance',
    scopes: ACCOUNT,
    events: { Created: "Monitoring of a payee's coverage began.", Updated: 'The monitoring changed.' },
  },
  SharedFileRequest: {
    domain: 'compliance',
    scopes: ACCOUNT,
    events: {
      Created: 'A payee was asked to upload a file.',
      Uploaded: 'A file was uploaded for the request.',
      Submitted: 'The request was submitted.',
      Completed: 'The request completed.',
      Failed: 'The request failed.',
      Processing: 'The uploaded files are being processed.',
      PendingSubmission: 'Files were uploaded and the request awaits submission.',
    },
  },
  SignatureRequest: {
    domain: 'compliance',
    scopes: ACCOUNT,
    events: {
      Created: 'A request to sign a document was created.',
      Sent: 'The request was sent to its signers.',
      Reminded: 'A reminder was sent to a signer who has not signed.',
      Completed: 'Every party signed.',
      Cancelled: 'The request was cancelled.',
    },
  },
  VaultFile: {
    domain: 'compliance',
    scopes: ACCOUNT,
    events: { Created: 'A file was stored in the vault.', Updated: 'A file in the vault changed.' },
  },
};
