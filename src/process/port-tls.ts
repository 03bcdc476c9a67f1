import { X509Certificate } from 'node:crypto';
import type { Logger } from 'pino';
import { UpstreamCertificateFiles } from '../config/files/certificates.ts';
import { formatProblem } from '../config/problem.ts';
import { type Watch, watchFiles } from '../config/watch.ts';
import type { ServerCertificates } from '../domain/connections/tls-files.ts';
import type { Upstream } from '../gateway/upstream/upstreams.ts';
import { PortTls } from '../http/server/tls.ts';
import type { Metrics } from '../observe/metrics/metrics.ts';
import type { Configuration } from './configuration.ts';

/** Where certificates come from. */
interface CertificateSource<T> {
  files(): readonly string[];
  /** Returns the same object as before if no file has changed. Throws a ConfigError if they cannot be used. */
  read(): T;
}

/**
 * The TLS of the ports, and of the connections to upstreams. Changed certificates are used for new connections within a second; invalid ones
 * are logged and not used.
 */
export function runTls({ files }: Configuration, observer: Metrics, log: Logger) {
  const watches: Watch[] = [];
  /** When the certificate of each port ends, in Unix time. */
  const ends = new Map<string, number>();
  const follow = <T>(source: CertificateSource<T>, current: T, where: object, use: (changed: T) => void) =>
    watches.push(followCertificates(source, current, where, use, observer, log));
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
    follow(source, current, { port: name }, (changed) => {
      tls.replace(changed);
      show(changed);
    });
    return tls;
  };
  return {
    listen: run('listen'),
    admin: run('admin'),
    decisions: run('decisions'),
    ends,
    followUpstreams(upstreams: readonly Upstream[]) {
      for (const { prefix, origin, tls, pool } of upstreams) {
        if (tls === undefined) continue;
        const source = new UpstreamCertificateFiles(tls, [
          'upstream',
          ...(prefix === '' ? [] : [prefix]),
          'tls',
        ]);
        if (source.files().length === 0) continue;
        follow(source, source.read(), { upstream: origin + prefix }, (changed) =>
          pool.useTls({ ...changed, verify: tls.verify }),
        );
      }
    },
    close() {
      for (const watch of watches) watch.close();
    },
  };
}

function followCertificates<T>(
  source: CertificateSource<T>,
  current: T,
  where: object,
  use: (changed: T) => void,
  observer: Metrics,
  log: Logger,
): Watch {
  const part = JSON.stringify(where);
  return watchFiles<T>({
    current,
    files: () => source.files(),
    load: () => source.read(),
    onLoad(changed) {
      use(changed);
      observer.reloaded('certificates', part);
      log.info(where, 'changed certificates are in use');
    },
    onProblems(problems) {
      observer.reloadRefused('certificates', part);
      log.error(
        { ...where, problems: problems.map(formatProblem) },
        'changed certificates are refused: the previous version stays in use',
      );
    },
  });
}
