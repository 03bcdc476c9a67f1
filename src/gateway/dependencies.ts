import type { Logger } from 'pino';
import type { OwnerReports } from '../admin/fleet/owner-reports.ts';
import type { Settings } from '../config/settings/settings.ts';
import type { CorsSettings } from '../http/message/fields/cors.ts';
import type { ListenSettings } from '../http/server/server.ts';
import type { PortTls } from '../http/server/tls.ts';
import type { GatewayObserver } from '../observe/gateway-observer.ts';
import type { AccessLog } from '../observe/log/access-log.ts';
import type { HttpMetrics } from '../observe/metrics/http-metrics.ts';
import type { Spans } from '../observe/otel/spans.ts';
import type { DecisionDependencies } from '../stages/decide.ts';
import type { PathProfile } from '../stages/path/folded-path.ts';
import type { UpstreamSettings } from './upstream/upstreams.ts';

/** What a gateway depends on. */
export interface GatewayDependencies extends DecisionDependencies {
  readonly baseUrl: string;
  readonly listen: ListenSettings;
  /** TLS of the port for clients; undefined to serve HTTP. */
  readonly tls: PortTls | undefined;
  readonly cors: CorsSettings;
  readonly upstream: UpstreamSettings & { readonly pathProfile: PathProfile };
  readonly usage: Settings['usage'];
  /** What Accounts did lately, which callers may see. */
  readonly reports: Pick<OwnerReports, 'sumIfRoom'>;
  readonly observer: GatewayObserver;
  readonly log: Logger;
  /** Writes a line for each request; undefined to write none. */
  readonly accessLog: AccessLog | undefined;
  /** Records spans; undefined to record none. */
  readonly tracing: Spans | undefined;
  /** Records OpenTelemetry's HTTP metrics; undefined to record none. */
  readonly httpMetrics?: HttpMetrics | undefined;
  /** Whether connections are to end with their next response. */
  isDraining(): boolean;
}

export interface Address {
  readonly host: string;
  readonly port: number;
}

/** A gateway that is ready to listen. Closing it does not close the store. */
export interface Gateway {
  /** @returns where clients connect, such as `http://127.0.0.1:8080` */
  listen(address: Address): Promise<string>;
  /** Stops accepting connections, gives requests in progress `graceMs` to finish, then aborts the others. */
  close(graceMs: number): Promise<void>;
}
