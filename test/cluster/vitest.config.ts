import { defineConfig } from 'vitest/config';

/** `npm run test:cluster`: against the cluster that KUBECONFIG names; not part of `npm test`. */
export default defineConfig({
  test: {
    include: ['test/cluster/*.cluster.ts'],
    globalSetup: ['test/cluster/setup.ts'],
    // Each file has a namespace of its own, but figures taken beside another file's load would mean nothing.
    fileParallelism: false,
    testTimeout: 300_000,
    hookTimeout: 300_000,
  },
});
