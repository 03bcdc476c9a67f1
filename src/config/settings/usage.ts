import { Type } from 'typebox';
import { section, whole } from './section.ts';

/** What callers may see of their own limits. */
export const usageSchema = section('Shows callers their own limits. See docs/customers.md.', {
  path: Type.Optional(
    Type.String({
      description:
        'Path on the port for clients where callers see what is left of their own limits, such as /.well-known/rate-limits. Without it, there is no such path.',
      // Such a path has one spelling, and no dot segment.
      pattern: '^(/\\.?[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+$',
      maxLength: 256,
      expects: 'a path such as /.well-known/rate-limits',
    }),
  ),
  requestsPerMinute: whole(
    'Requests for that path per minute and client address, at each replica.',
    60,
    [1, 1_000_000],
  ),
});
