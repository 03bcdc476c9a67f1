import { Type } from 'typebox';
import { section, whole } from './section.ts';

/** Where counts are recorded for longer than Redis keeps them. */
export const journalSchema = section(
  'Records what long limits counted in PostgreSQL. See docs/operating/journal.md.',
  {
    url: Type.Optional(
      Type.String({
        description:
          'URL of the PostgreSQL database. Without it, nothing is recorded. Prefer setting it by its variable.',
        // The URL can contain a password.
        secret: true,
        url: true,
        pattern: '^postgres(ql)?://[^\\s]+$',
        expects: 'a postgres:// URL',
      }),
    ),
    flushMs: whole(
      'Time between two writes. A process that is killed loses the counts of this time.',
      1_000,
      [100, 60_000],
    ),
  },
);
