import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { dump } from 'js-yaml';
import { Namespace, run } from './commands.ts';

/** The image as the cluster knows it, and a Redis for it. */
export const IMAGE = process.env.WEIR_TEST_IMAGE ?? 'registry.example.com/weir:next';
const REDIS_IMAGE = process.env.WEIR_TEST_REDIS_IMAGE ?? 'docker.io/library/redis:7.4-alpine';

/** Tokens of the Secret weir-identities: of acct_1, and of acct_2. */
export const TOKEN = 'demo-service';
export const OTHER_TOKEN = 'other-service';

/**
 * A namespace that enforces the restricted Pod Security profile, with what an operator has already: a Redis, the
 * service behind the gateway, the Secrets, and a pod to send requests from.
 */
export async function createEnvironment(): Promise<Namespace> {
  const namespace = new Namespace(`weir-test-${randomBytes(3).toString('hex')}`);
  await namespace.kubectl('create', 'namespace', namespace.name);
  await namespace.kubectl(
    'label',
    'namespace',
    namespace.name,
    'pod-security.kubernetes.io/enforce=restricted',
  );
  const manifests = readFileSync(join(import.meta.dirname, 'environment.yaml'), 'utf8');
  await namespace.apply(manifests.replaceAll('WEIR_IMAGE', IMAGE).replaceAll('REDIS_IMAGE', REDIS_IMAGE));
  for (const name of ['redis', 'payments', 'probe']) {
    await namespace.kubectl('rollout', 'status', `deployment/${name}`, '--timeout=180s');
  }
  return namespace;
}

export async function removeEnvironment(namespace: Namespace | undefined): Promise<void> {
  if (namespace === undefined || process.env.WEIR_TEST_KEEP !== undefined) return;
  await run('kubectl', ['delete', 'namespace', namespace.name, '--timeout=120s']);
}

/** Five pods fit a node of two cores. */
const SMALL = ['--set', 'resources.requests.cpu=50m'];

/** The `helm install` of the README of a checkout, section Deploy, as arguments; default: this checkout and the image under test. */
export function readmeInstall(checkout = '.', image = IMAGE): readonly string[] {
  const readme = readFileSync(join(checkout, 'README.md'), 'utf8');
  const [, command = ''] = /^helm (install [\s\S]*?[^\\])\n/m.exec(readme) ?? [];
  const args = command.replaceAll('\\\n', ' ').trim().split(/\s+/);
  if (args[0] !== 'install') throw new Error('README.md has no helm install');
  const withChart = args.map((arg) => (arg === './helm/weir' ? `${checkout}/helm/weir` : arg));
  return [...withChart, ...imageValues(image), ...SMALL];
}

export function imageValues(image = IMAGE): readonly string[] {
  const [repository, tag] = image.split(/:(?=[^/]+$)/);
  return ['--set', `image.repository=${repository},image.tag=${tag ?? ''}`];
}

interface PodList {
  readonly items: readonly {
    readonly metadata: { readonly name: string; readonly deletionTimestamp?: string };
    readonly status: {
      readonly podIP?: string;
      readonly phase: string;
      readonly conditions?: readonly { readonly type: string; readonly status: string }[];
      readonly containerStatuses?: readonly { readonly restartCount: number }[];
    };
  }[];
}

export interface GatewayPod {
  readonly name: string;
  readonly ip: string;
  readonly restarts: number;
}

/** The gateway's pods that are ready and not about to end. */
export async function gatewayPods(namespace: Namespace): Promise<readonly GatewayPod[]> {
  const list = await namespace.kubectl(
    'get',
    'pods',
    '-l',
    'app.kubernetes.io/component=gateway',
    '-o',
    'json',
  );
  return (JSON.parse(list) as PodList).items.flatMap(({ metadata, status }) => {
    const isReady =
      status.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') === true;
    if (!isReady || metadata.deletionTimestamp !== undefined || status.podIP === undefined) return [];
    return [
      { name: metadata.name, ip: status.podIP, restarts: status.containerStatuses?.[0]?.restartCount ?? 0 },
    ];
  });
}

/** Waits until this many pods are ready and no other is left. */
export async function scaleGateway(namespace: Namespace, replicas: number): Promise<void> {
  await namespace.kubectl('scale', 'deployment/weir', `--replicas=${replicas}`);
  await namespace.kubectl('rollout', 'status', 'deployment/weir', '--timeout=180s');
  const selector = 'app.kubernetes.io/component=gateway';
  for (;;) {
    const names = await namespace.kubectl('get', 'pods', '-l', selector, '-o', 'name');
    if (names.trim().split('\n').length === replicas) return;
    await namespace
      .kubectl('wait', 'pod', '-l', selector, '--for=delete', '--timeout=2s')
      .catch(() => undefined);
  }
}

/** A ConfigMap of one key. */
export function configMap(name: string, key: string, content: unknown): string {
  const text = typeof content === 'string' ? content : dump(content);
  return JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data: { [key]: text } });
}

/** Names of what a namespace holds, without what Kubernetes itself puts there. */
export async function inventory(namespace: Namespace): Promise<readonly string[]> {
  const kinds = await run('kubectl', ['api-resources', '--namespaced', '--verbs=list', '-o', 'name']);
  const ignored = /^(events|endpoints|leases)(\.|$)|^pods\.metrics|^endpointslices|localsubjectaccessreviews/;
  const wanted = kinds.stdout.split('\n').filter((kind) => kind !== '' && !ignored.test(kind));
  const names = await namespace.kubectl('get', wanted.join(','), '-o', 'name', '--ignore-not-found');
  return names
    .split('\n')
    .filter((name) => name !== '' && !/^(pod|replicaset)/.test(name))
    .sort();
}
