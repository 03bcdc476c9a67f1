import { AbstractConnector } from 'ioredis';

/**
 * Keeps the process alive if the connection that ioredis disconnects fails more than once.
 *
 * ioredis 6.0 listens to one error of each connection. If it disconnects while the handshake of TLS fails, because the certificate of
 * Redis is refused, the server answers with an alert, and Node emits that as a second error, which ended the process. This happened within
 * a second where a Cluster had a certificate of another authority, and where a gateway stopped. ioredis opens the clients of Sentinels and
 * Cluster nodes itself, so an option or a subclass does not reach them all.
 *
 * Remove this file when ioredis listens to all errors of a connection. test/store/a-refused-certificate-ends-no-process.test.ts then passes
 * without it.
 */
function ignoreLateErrors(): void {
  const connector = AbstractConnector.prototype as unknown as Ending;
  const { disconnect } = connector;
  connector.disconnect = function (this: Ending) {
    this.stream?.on('error', () => {});
    disconnect.call(this);
  };
}

interface Ending {
  readonly stream?: NodeJS.EventEmitter;
  disconnect(): void;
}

ignoreLateErrors();
