import { Type } from 'typebox';
import { section } from './section.ts';

/** Which web pages may read the responses. */
export const corsSchema = section('Cross-origin requests of browsers. See docs/proxy.md.', {
  origins: Type.Array(
    Type.String({
      pattern: '^(\\*|https?://[^\\s/?#@A-Z]+)$',
      expects: 'an origin in lower case such as https://app.example.com, or *',
    }),
    {
      description:
        'Origins whose pages may read responses, or `*` for all. Empty: CORS is left to the upstream.',
      default: [],
    },
  ),
  preflight: Type.Union([Type.Literal('answer'), Type.Literal('forward')], {
    description: 'Whether the gateway answers preflight requests itself, or forwards them to the upstream.',
    default: 'answer',
  }),
  maxAgeSeconds: Type.Integer({
    description: 'How long a browser may remember the answer to a preflight request.',
    default: 600,
    minimum: 0,
    maximum: 86_400,
  }),
});
