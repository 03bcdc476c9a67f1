import { Type } from 'typebox';
import { closed, list, literals, section, text } from './section.ts';

const folder = { file: true, expects: 'the path of a folder' };

const watchedObject = closed({
  kind: literals(['ConfigMap', 'Secret'], { description: 'Kind of the object.' }),
  name: Type.String({
    description: "Name of the object in the pod's namespace.",
    pattern: '^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$',
    expects: 'the name of a Kubernetes object',
  }),
  folder: text('Folder that it is mounted in.', folder),
});

/** Watching mounted ConfigMaps, which is faster than waiting for the kubelet to update them. */
export const kubernetesSchema = section('Watching mounted ConfigMaps through the Kubernetes API.', {
  watch: list(
    'Mounted ConfigMaps and Secrets to watch through the API server, so that a change takes effect within two ' +
      'seconds. Without permission, Weir uses the mounted files.',
    watchedObject,
    { expects: 'a list of objects, each with kind, name and folder' },
  ),
  url: Type.Optional(
    Type.String({
      description: "URL of the API server. Default: the one in the pod's environment.",
      pattern: '^https://[^\\s/?#]+/?$',
      expects: 'an https:// URL without a path',
    }),
  ),
  credentialsFolder: text('Folder with `token`, `ca.crt` and `namespace`. Read again for every connection.', {
    default: '/var/run/secrets/kubernetes.io/serviceaccount',
    ...folder,
  }),
});
