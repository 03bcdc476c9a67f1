import { UnusableSocket } from '../gateway/decisions/socket.ts';
import type { Address } from '../gateway/dependencies.ts';
import { CommandError } from './failure.ts';

/**
 * Opens a port that the settings name, and returns its URL.
 *
 * @param section the section of weir.yaml with `host` and `port`
 * @throws CommandError that names the setting and its variable, if the address or the port cannot be used
 */
export async function openPort(
  section: Section,
  { host, port }: Address,
  listen: (address: Address) => Promise<string>,
): Promise<string> {
  try {
    return await listen({ host, port });
  } catch (error) {
    if (error instanceof UnusableSocket) throw new CommandError(error.message);
    const problem = listenProblem((error as NodeJS.ErrnoException).code, section, { host, port });
    throw problem === undefined ? error : new CommandError(problem);
  }
}

const VARIABLES = {
  listen: 'WEIR',
  admin: 'WEIR_ADMIN',
  decisions: 'WEIR_DECISIONS',
  'decisions.envoy': 'WEIR_DECISIONS_ENVOY',
};

/** A section of weir.yaml that opens a port. */
export type Section = keyof typeof VARIABLES;

/** Of `weir start` and `weir demo`. */
const OPTIONS = { listen: ', --port', admin: ', --admin-port', decisions: '', 'decisions.envoy': '' };

function listenProblem(
  code: string | undefined,
  section: Section,
  { host, port }: Address,
): string | undefined {
  const otherPort = `set ${section}.port${OPTIONS[section]} or ${VARIABLES[section]}_PORT`;
  const otherHost = `set ${section}.host or ${VARIABLES[section]}_HOST`;
  switch (code) {
    case 'EADDRINUSE':
      return `Port ${port} on ${host} is in use: stop the program that uses it, or ${otherPort} to another port.`;
    case 'EACCES':
      return `This user may not open port ${port} on ${host}: ${otherPort} to another port.`;
    case 'EADDRNOTAVAIL':
      return `This machine has no address ${host}: ${otherHost} to one that it has.`;
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `The host name ${host} cannot be resolved: ${otherHost} to an address of this machine.`;
    default:
      return undefined;
  }
}
