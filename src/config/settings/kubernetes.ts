import { Type } from 'typebox';
import { section } from './section.ts';

const watchedObject = Type.Object(
  {
    kind: Type.Union([Type.Literal('ConfigMap'), Type.Literal('Secret')], { description: 'Its kind.' }),
    name: Type.String({
      description: 'Its name, in the namespace of the pod.',
      pattern: '^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$',
      expects: 'the name of a Kubernetes object',
    }),
    folder: Type.String({
      description: 'Where it is mounted.',
      minLength: 1,
      file: true,
      expects: 'the path of a folder',
    }),
  },
  { additionalProperties: false },
);

/** How a pod follows its mounted ConfigMaps faster than the kubelet updates them. */
export const kubernetesSchema = section('Following mounted ConfigMaps through the Kubernetes API.', {
  watch: Type.Array(watchedObject, {
    description:
      'Mounted ConfigMaps and Secrets to watch through the API server, so that a change is in force within two ' +
      'seconds; without permission the mounted files are followed.',
    default: [],
    expects: 'a list of objects, each with kind, name and folder',
  }),
  url: Type.Optional(
    Type.String({
      description:
        'The API server; the one that Kubernetes names in the environment of every pod by default.',
      pattern: '^https://[^\\s/?#]+/?$',
      expects: 'an https:// URL without a path',
    }),
  ),
  credentialsFolder: Type.String({
    description: 'Holds `token`, `ca.crt` and `namespace`; read again for every connection.',
    default: '/var/run/secrets/kubernetes.io/serviceaccount',
    minLength: 1,
    file: true,
    expects: 'the path of a folder',
  }),
});
