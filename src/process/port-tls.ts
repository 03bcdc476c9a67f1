import { X509Certificate } from 'node:crypto';
import type { Logger } from 'pino';
import { formatProblem } from '../config/problem.ts';
import { type Watch, watchFiles } from '../config/watch.ts';
import type { ServerCertificates } from '../domain/connections/tls-files.ts';
import { PortTls } from '../http/server/tls.ts';
import type { Metrics } from '../observe/metrics/metrics.ts';
import type { Configuration } from './configuration.ts';

/** The TLS of the ports. Changed certificates are used for new connections within a second; invalid ones are logged and not used. */
export function runTls({ files }: Configuration, observer: Metrics, log: Logger) {
  const watches: Watch[] = [];
  /** When the certificate of each port ends, in Unix time. */
  const ends = new Map<string, number>();
  /** Undefined if the port serves HTTP. */
  const run = (name: keyof typeof files.certificates): PortTls | undefined => {
    const source = files.certificates[name];
    if (source === undefined) return undefined;
    const current = source.read();
    const tls = new PortTls(current);
    const show = ({ cert }: ServerCertificates) => {
      const endsAtMs = Date.parse(new X509Certificate(cert).validTo);
      ends.set(name, endsAtMs);
      observer.certificateInUse(name, endsAtMs);
    };
    show(current);
    const watch = watchFiles<ServerCertificates>({
      current,
      files: () => source.files(),
      load: () => source.read(),
      onLoad(changed) {
        tls.replace(changed);
        show(changed);
        observer.reloaded('certificates', name);
        log.info({ port: name }, 'changed certificates are in use');
      },
      onProblems(problems) {
        observer.reloadRefused('certificates', name);
        log.error(
          { port: name, problems: problems.map(formatProblem) },
          'changed certificates are refused: the previous version stays in use',
        );
      },
    });
    watches.push(watch);
    return tls;
  };
  return {
    listen: run('listen'),
    admin: run('admin'),
    decisions: run('decisions'),
    ends,
    close() {
      for (const watch of watches) watch.close();
    },
  };
}
