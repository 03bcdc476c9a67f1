import type { Domain } from './resource.ts';

/** Contract section 6.5: types that are known but not published. A family in the contract is listed here by its members. */
export const reservedTypes: Readonly<
  Record<string, { readonly domain: Domain; readonly description: string }>
> = {
  'Payee.Created': { domain: 'payments', description: 'Reserved: a payee was created.' },
  'Payee.Deactivated': { domain: 'payments', description: 'Reserved: a payee was deactivated.' },
  'PayeeLinkRequest.Created': { domain: 'payments', description: 'Reserved: a payee link was requested.' },
  'PayeeLinkRequest.Accepted': { domain: 'payments', description: 'Reserved: a link request was accepted.' },
  'PayeeLinkRequest.Declined': { domain: 'payments', description: 'Reserved: a link request was declined.' },
  'Engagement.EligibilityChanged': {
    domain: 'payments',
    description: 'Reserved: the eligibility of an engagement changed.',
  },
  'Payout.Created': { domain: 'payments', description: 'Reserved: a payout was created.' },
  'Payout.Completed': { domain: 'payments', description: 'Reserved: a payout completed.' },
  'Payout.Failed': { domain: 'payments', description: 'Reserved: a payout failed.' },
  'Payable.DepositConfirmed': {
    domain: 'payments',
    description: 'Reserved: the deposit of a payable was confirmed.',
  },
  'PayrollRun.Created': { domain: 'payments', description: 'Reserved: a payroll run was created.' },
  'PayrollRun.Completed': { domain: 'payments', description: 'Reserved: a payroll run completed.' },
  'TaxForm.Submitted': { domain: 'compliance', description: 'Reserved: a tax form was submitted.' },
  'TaxFiling.Accepted': { domain: 'compliance', description: 'Reserved: a tax filing was accepted.' },
  'TaxFiling.Rejected': { domain: 'compliance', description: 'Reserved: a tax filing was rejected.' },
};
