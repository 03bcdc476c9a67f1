import { execFileSync } from 'node:child_process';

/** Fails in one sentence if there is no cluster to test against. */
export default function setup(): void {
  for (const command of ['kubectl', 'helm']) {
    if (!runs(command, 'version', '--client')) fail(`the command ${command} is not on the PATH`);
  }
  if (process.env.KUBECONFIG === undefined) fail('KUBECONFIG is not set');
  if (!runs('kubectl', 'get', '--raw', '/readyz', '--request-timeout=10s')) {
    fail(`the cluster of KUBECONFIG=${process.env.KUBECONFIG} does not answer`);
  }
}

function runs(command: string, ...args: readonly string[]): boolean {
  try {
    // helm's version takes no --client.
    execFileSync(command, command === 'helm' ? ['version'] : args, { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

function fail(reason: string): never {
  throw new Error(
    `npm run test:cluster needs a Kubernetes cluster, and ${reason}: start one with kind or minikube, load the image into it and set KUBECONFIG (test/cluster/README.md)`,
  );
}
