import { readConfiguration } from './configuration.ts';

/** `weir check`: reads everything that `start` would read; a problem anywhere is thrown with all the others. */
export async function check({ config }: { config: string }): Promise<void> {
  const { settings, operations, limits, identities } = await readConfiguration(config, process.env);
  const dear = operations.filter(({ cost }) => cost > 1).length;
  process.stdout.write(
    `${config} is sound: ${operations.length} operations (${dear} cost more than 1 point), ` +
      `limits for ${limits.accounts.size} accounts and ${limits.organizations.size} organizations of their own, ` +
      `${settings.identity.kind === 'static' ? `${identities.tokens.size} tokens` : `callers by ${settings.identity.kind}`}.\n`,
  );
}
