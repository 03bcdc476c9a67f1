import type { Contestant } from './contestant.ts';
import { envoy } from './envoy.ts';
import { envoyWeir } from './envoy-weir.ts';
import { fastifyProxy } from './fastify.ts';
import { haproxy } from './haproxy.ts';
import { nginx } from './nginx.ts';
import { bare } from './node-program.ts';
import { weir } from './weir.ts';

/** What all ratios refer to. */
export const PLAIN_PROXY = fastifyProxy('none');

/** In the order in which they are measured and shown. */
export const CONTESTANTS: readonly Contestant[] = [
  PLAIN_PROXY,
  weir('memory'),
  weir('redis'),
  weir('memory', { accessLog: false }),
  weir('redis', { accessLog: false }),
  fastifyProxy('@fastify/rate-limit'),
  fastifyProxy('rate-limiter-flexible'),
  bare,
  nginx('none'),
  nginx('limit_req'),
  haproxy,
  envoy,
  envoyWeir,
];
