import { Type } from 'typebox';
import { choice, list, seconds, section } from './section.ts';

/** Which web pages may read the responses. Like each section of the settings, in a file of its own. */
export const corsSchema = section('Cross-origin requests of browsers. See docs/proxy.md.', {
  origins: list(
    'Origins whose pages may read responses, or `*` for all. Empty: CORS is left to the upstream.',
    Type.String({
      pattern: '^(\\*|https?://[^\\s/?#@A-Z]+)$',
      expects: 'an origin in lower case such as https://app.example.com, or *',
    }),
  ),
  preflight: choice(
    'Whether the gateway answers preflight requests itself, or forwards them to the upstream.',
    ['answer', 'forward'],
  ),
  maxAgeSeconds: seconds('How long a browser may remember the answer to a preflight request.', 600),
});
