import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { type Contestant, upstreamUrl } from './contestant.ts';
import { LIKE_WEIR, startOnNode } from './node-program.ts';

const SERVER = fileURLToPath(new URL('./fastify-server.mjs', import.meta.url));

/** What stands before @fastify/http-proxy; `none` is the plain proxy that all ratios refer to. */
export type FastifyLimiter = 'none' | '@fastify/rate-limit' | 'rate-limiter-flexible';

/** What a port with TLS needs. */
interface CertificateFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

/** @fastify/http-proxy as it comes, with one of npm's limiters in front of it or none. */
export function fastifyProxy(limiter: FastifyLimiter, tls?: CertificateFiles): Contestant {
  const packages = limiter === 'none' ? ['@fastify/http-proxy'] : ['@fastify/http-proxy', limiter];
  return {
    name: limiter === 'none' ? '@fastify/http-proxy' : `${limiter} + http-proxy`,
    limiter: limiter === 'none' ? 'none' : 'Account, fixed window, in Redis',
    hasLimiter: limiter !== 'none',
    find: () => ({ version: packages.map((name) => `${name} ${installedVersion(name)}`).join(', ') }),
    start(scene) {
      const { limit, redisPort } = scene;
      return startOnNode(scene, (port) => [
        ...LIKE_WEIR,
        SERVER,
        limiter,
        port,
        upstreamUrl(scene),
        redisPort,
        limit,
        ...(tls === undefined ? [] : [tls.certFile, tls.keyFile]),
      ]);
    },
  };
}

function installedVersion(name: string): string {
  const file = new URL(`../../node_modules/${name}/package.json`, import.meta.url);
  const { version }: { version: string } = JSON.parse(readFileSync(file, 'utf8'));
  return version;
}
