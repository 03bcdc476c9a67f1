import { portToken } from './port-token.ts';
import { address, section, serverTls } from './section.ts';

/** The port for operators, and the token that protects it. Like each section of the settings, in a file of its own. */
export const adminSchema = section('The port that serves metrics, health and usage.', {
  ...address('127.0.0.1', 9090, 'WEIR_ADMIN'),
  tls: serverTls({}),
  ...portToken('Bearer token for everything except metrics and health.'),
});

const LOOPBACK_ADDRESS = /^(localhost|127(\.\d{1,3}){3}|::1)$/i;

/** Whether only this machine reaches a port on this host. */
export function isLoopback(host: string): boolean {
  return LOOPBACK_ADDRESS.test(host);
}
