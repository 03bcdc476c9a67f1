import { fileURLToPath } from 'node:url';
import type { Contestant } from './contestant.ts';
import { LIKE_WEIR, startOnNode } from './node-program.ts';

const SERVER = fileURLToPath(new URL('./bare-server.mjs', import.meta.url));

/** The floor of this stack: no framework, no limiter, no request id, hardly a header looked at. */
export const bare: Contestant = {
  name: 'bare node:http + undici',
  limiter: 'none',
  hasLimiter: false,
  find: () => ({ version: `Node ${process.version}` }),
  start: (scene) => startOnNode(scene, (port) => [...LIKE_WEIR, SERVER, port, scene.upstreamPort]),
};
