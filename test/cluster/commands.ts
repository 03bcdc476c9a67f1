import { type ChildProcessWithoutNullStreams, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';

export interface Finished {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

const MOST_OUTPUT = 64 * 1_048_576;

/** Runs a command to its end, whatever its exit code. */
export function run(command: string, args: readonly string[], input?: string): Promise<Finished> {
  return new Promise((resolve) => {
    const child = execFile(command, args, { maxBuffer: MOST_OUTPUT }, (error, stdout, stderr) => {
      const code = error === null ? 0 : typeof error.code === 'number' ? error.code : 1;
      resolve({ code, stdout, stderr });
    });
    child.stdin?.end(input ?? '');
  });
}

/** As `run`; throws what the command printed if it fails. */
async function succeed(command: string, args: readonly string[], input?: string): Promise<string> {
  const { code, stdout, stderr } = await run(command, args, input);
  if (code !== 0) throw new Error(`${command} ${args.join(' ')} failed (${code}):\n${stderr}${stdout}`);
  return stdout;
}

/** kubectl and helm in one namespace. */
export class Namespace {
  readonly name: string;

  constructor(name: string) {
    this.name = name;
  }

  kubectl(...args: readonly string[]): Promise<string> {
    return succeed('kubectl', ['--namespace', this.name, ...args]);
  }

  apply(manifests: string): Promise<string> {
    return succeed('kubectl', ['--namespace', this.name, 'apply', '--server-side', '-f', '-'], manifests);
  }

  /** Posts an object to a path of the API. */
  create(path: string, object: string): Promise<string> {
    return succeed('kubectl', ['create', '--raw', path, '-f', '-'], object);
  }

  helm(...args: readonly string[]): Promise<string> {
    return succeed('helm', [...args, '--namespace', this.name]);
  }

  /** For a helm command that may fail. */
  tryHelm(...args: readonly string[]): Promise<Finished> {
    return run('helm', [...args, '--namespace', this.name]);
  }

  /** A process in the container of a pod. */
  exec(pod: string, command: readonly string[]): ChildProcessWithoutNullStreams {
    return spawn('kubectl', ['--namespace', this.name, 'exec', '-i', pod, '--', ...command]);
  }
}

/** The Kubernetes API over plain HTTP, without the time that a kubectl takes to start. */
export interface Api {
  /** Replaces a ConfigMap; resolves once the API server has stored it. */
  replaceConfigMap(namespace: Namespace, manifest: string): Promise<void>;
  stop(): void;
}

export async function startApi(): Promise<Api> {
  const child = spawn('kubectl', ['proxy', '--port=0'], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [greeting] = (await once(child.stdout, 'data')) as [Buffer];
  const address = /127\.0\.0\.1:\d+/.exec(String(greeting))?.[0];
  if (address === undefined) throw new Error(`kubectl proxy printed: ${greeting}`);
  return {
    async replaceConfigMap(namespace, manifest) {
      const { metadata } = JSON.parse(manifest) as { metadata: { name: string } };
      const url = `http://${address}/api/v1/namespaces/${namespace.name}/configmaps/${metadata.name}`;
      const headers = { 'content-type': 'application/json' };
      const answer = await fetch(url, { method: 'PUT', headers, body: manifest });
      if (!answer.ok) throw new Error(`PUT ${url}: ${answer.status} ${await answer.text()}`);
      await answer.body?.cancel();
    },
    stop: () => child.kill(),
  };
}
