import { ACCOUNT, type Catalog, count, day, idOf, text } from './resource.ts';

/** Contract section 6.3, the compliance records, and tax forms. */
export const complianceCatalog: Catalog = {
  BackgroundCheck: {
    domain: 'compliance',
    what: 'A background check ordered for a payee.',
    scopes: ACCOUNT,
    filters: ['payeeId'],
    fields: {
      payeeId: idOf('Payee', 'Who is checked.', 'payee_1001'),
      packageName: text('What is checked.', 'Standard'),
    },
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
    what: 'A reusable template for e-signature.',
    scopes: ACCOUNT,
    fields: {
      name: text('Its name.', 'Contractor agreement'),
    },
    events: { Created: 'A reusable e-signature template was created.' },
  },
  InsuranceCoverage: {
    domain: 'compliance',
    what: "A payee's insurance coverage record.",
    scopes: ACCOUNT,
    filters: ['payeeId'],
    fields: {
      payeeId: idOf('Payee', 'Who is insured.', 'payee_1001'),
      coverageType: text('What is covered.', 'GeneralLiability'),
      expiresOn: day('The last day of the cover.', '2026-12-31'),
    },
    events: {
      Updated: 'An insurance coverage record changed.',
      Created: 'An insurance coverage record was created.',
    },
  },
  InsuranceImport: {
    domain: 'compliance',
    what: 'A bulk import of insurance coverage records.',
    scopes: ACCOUNT,
    fields: {
      fileName: text('The imported file.', 'coverages.csv'),
      rows: count('Records in the file.', 120),
    },
    events: {
      Created: 'A bulk import of coverage records was created.',
      Processed: 'The import was processed.',
      Submitted: 'The import was submitted.',
    },
  },
  InsuranceMonitor: {
    domain: 'compliance',
    what: "Ongoing monitoring of a payee's coverage.",
    scopes: ACCOUNT,
    filters: ['payeeId'],
    fields: {
      payeeId: idOf('Payee', 'Whose coverage is monitored.', 'payee_1001'),
    },
    events: { Created: "Monitoring of a payee's coverage began.", Updated: 'The monitoring changed.' },
  },
  SharedFileRequest: {
    domain: 'compliance',
    what: 'A request for a payee to upload a file.',
    scopes: ACCOUNT,
    filters: ['payeeId'],
    fields: {
      payeeId: idOf('Payee', 'Who is asked.', 'payee_1001'),
      subject: text('What is asked for.', 'Proof of address'),
    },
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
    what: 'A request for one or more parties to sign a document.',
    scopes: ACCOUNT,
    filters: ['documentTemplateId'],
    fields: {
      documentTemplateId: idOf('DocumentTemplate', 'What is to be signed.', 'documenttemplate_1001'),
      signers: count('How many parties sign.', 2),
    },
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
    what: 'A file stored in the vault.',
    scopes: ACCOUNT,
    idPrefix: 'file',
    fields: {
      name: text('Its name.', 'contract-1.pdf'),
    },
    events: { Created: 'A file was stored in the vault.', Updated: 'A file in the vault changed.' },
  },
  TaxForm: {
    domain: 'compliance',
    what: 'A tax form. Its events are not published.',
    scopes: ACCOUNT,
    fields: {
      form: text('Which form.', 'W-9'),
      year: count('The tax year.', 2025),
    },
    events: {},
  },
};
