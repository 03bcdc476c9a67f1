import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { closeOnSignal } from '../../process/close-on-signal.ts';
import { type Configuration, readConfiguration } from '../../process/configuration.ts';
import { CommandError } from '../../process/failure.ts';
import { environmentWith, type SettingOverrides } from '../../process/overrides.ts';
import { runGateway } from '../../process/run.ts';
import { allocateYoung, growOnceSettled } from '../../process/tune-memory.ts';
import { print, printError, shellWord } from '../print.ts';
import { type DemoLog, openDemoLog } from './demo-log.ts';
import { checkPorts } from './ports.ts';
import { DemoTraffic } from './traffic.ts';

const CONFIG = fileURLToPath(new URL('../../demo/weir.yaml', import.meta.url));
const LOG = fileURLToPath(new URL('../../demo/generated-access.log.gz', import.meta.url));

/** `weir-platform`, which a checkout of the repository has and the gateway's image has not. */
const PLATFORM = fileURLToPath(new URL('../../../platform/dist/main.js', import.meta.url));

/**
 * `weir demo`: the gateway in this process, the platform in another, everything embedded. With `traffic` it sends requests itself. With
 * `log` the log is written to the terminal instead of a file.
 */
export async function demo({
  traffic,
  log: showsLog = false,
  ...overrides
}: SettingOverrides & { readonly traffic: boolean; readonly log?: boolean }): Promise<void> {
  const closing = closeOnSignal();
  allocateYoung();
  const env = environmentWith(overrides, process.env);
  const { WEIR_PORT: port = '' } = env;
  const base = /^[1-9]\d*$/.test(port) ? { WEIR_BASE_URL: `http://127.0.0.1:${port}` } : {};
  const configuration = await readConfiguration(CONFIG, { ...base, ...env });
  if (configuration.settings.listen.port === 'off')
    throw new CommandError('The demo needs its port for clients: set WEIR_PORT to a number.');
  if (configuration.settings.upstream.url.startsWith('https:'))
    throw new CommandError('The platform of the demo does not speak TLS: name its address with http://.');
  await checkPorts(configuration.settings);
  const log = await openDemoLog(configuration.settings, showsLog);
  const platform = await startPlatformProcess(configuration.settings, log);
  try {
    const gateway = await runGateway(configuration, log);
    const { url = '', adminUrl } = gateway;
    growOnceSettled();
    const sent = traffic ? new DemoTraffic(url) : undefined;
    platform.once('exit', endWithPlatform);
    await closing({
      async close() {
        platform.off('exit', endWithPlatform);
        sent?.stop();
        await gateway.close();
        platform.kill('SIGTERM');
      },
    });
    print(...whatToTry(url, adminUrl, traffic, log));
  } catch (error) {
    platform.kill('SIGTERM');
    throw error;
  }
}

/** The platform ends when this process does, because the channel between the two closes. */
async function startPlatformProcess(
  { upstream, baseUrl }: Configuration['settings'],
  { descriptor }: DemoLog,
): Promise<ChildProcess> {
  if (!existsSync(PLATFORM)) {
    throw new CommandError(
      `The demo needs its platform, and there is no ${PLATFORM}: run npm start in the repository.`,
    );
  }
  const { hostname, port } = new URL(upstream.url);
  const command = [...process.execArgv, PLATFORM, '--host', hostname, '--port', port || '80'];
  const env = { ...process.env, WEIR_BASE_URL: baseUrl };
  const child = spawn(process.execPath, command, { env, stdio: ['ignore', descriptor, 'inherit', 'ipc'] });
  const ended = once(child, 'exit').then(() => {
    throw new CommandError('The demo needs its platform, which did not start: its output is above.');
  });
  await Promise.race([once(child, 'message'), ended]);
  ended.catch(() => {});
  return child;
}

function endWithPlatform(): void {
  printError('The platform has ended, and the demo with it.');
  process.exit(1);
}

function whatToTry(url: string, adminUrl: string, hasTraffic: boolean, { file }: DemoLog): readonly string[] {
  const at = (path: string) => shellWord(url + path);
  const person = "-H 'Authorization: Bearer demo-person'";
  const issued = `-d '{"name":"CI","principalId":"svc_1"}'`;
  return [
    '',
    'Try it:',
    '',
    '  # a read, headers only: 1 point of acct_1 and of its Organization, see RateLimit',
    `  curl -I ${person} ${at('/v3/payments/payees')}`,
    '',
    '  # a write for another Account that this Person may act for',
    `  curl -i -X POST ${person} -H 'X-Service-Account: acct_2' ${at('/v3/payments/payables/payable_2001/open')}`,
    '',
    '  # two sessions of 10 points for an Account with 10 a second: the second answer is a 429',
    `  curl -si -Z -X POST -H 'Authorization: Bearer demo-small' ${at('/v3/platform/{sessions,sessions}')}`,
    '',
    '  # an API key for a service account: issue it, call with it, revoke it, and the next call is a 401',
    `  curl -s -X POST ${person} -H 'Content-Type: application/json' ${issued} ${at('/v3/platform/api-keys')}`,
    `  curl -i -H 'Authorization: Bearer <key>' ${at('/v3/payments/payees')}`,
    `  curl -i -X POST ${person} ${at('/v3/platform/api-keys')}/<id>/revoke`,
    '',
    '  # which limits would have been enough for a day of (generated) traffic?',
    `  node ${shellWord(process.argv[1] ?? '')} replay ${shellWord(LOG)} --suggest 0.1%`,
    '',
    `Console: ${adminUrl}/   Metrics: ${adminUrl}/metrics`,
    ...(hasTraffic
      ? ['The demo sends a few requests a second for acct_4, acct_5 and acct_6; --no-traffic turns this off.']
      : []),
    file === undefined ? 'The log follows.' : `Log: ${file}   (--log writes it here instead)`,
    'Ctrl-C stops everything.',
    '',
  ];
}
