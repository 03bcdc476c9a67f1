import { digestOf } from '../domain/token-digest.ts';
import type { Verified, Verifier } from './cached-tokens.ts';
import { type Claims, readPrincipal } from './claims.ts';
import type { IdentityOf } from './identity-observer.ts';
import type { TokenFault } from './identity-source.ts';
import { isCanonical, isSigned, twinOf } from './jwt/signature-malleability.ts';
import { Provider, type Reporting } from './provider/provider.ts';
import { UnusableAnswer } from './provider/provider-answer.ts';

interface IntrospectionOptions extends Reporting {
  readonly url: string;
  readonly clientId: string;
  readonly clientSecret: string;
  readonly clientAuthentication: 'basic' | 'post';
  readonly issuer?: string | undefined;
  readonly audience?: string | readonly string[] | undefined;
  readonly claims: IdentityOf<'introspection'>['claims'];
  readonly timeoutMs: number;
  /** Unix time by the clock of revocations, which the time of a confirmation is compared with. */
  readonly sharedNowMs?: () => number;
}

/**
 * Verifies tokens by introspection at the issuer (RFC 7662). The issuer may verify a signed token leniently, so its encoding is checked
 * here.
 */
export class IntrospectionVerifier implements Verifier {
  readonly #options: IntrospectionOptions;
  readonly #provider: Provider;

  constructor(options: IntrospectionOptions) {
    this.#options = options;
    this.#provider = new Provider({ ...options, name: 'introspection' });
  }

  async verify(token: string, client: string): Promise<Verified> {
    if (isSigned(token) && !isCanonical(token))
      return { outcome: 'invalid', isFinal: true, fault: 'malformed' };
    const requestedAtMs = Date.now();
    const confirmedAtMs = this.#options.sharedNowMs?.() ?? requestedAtMs;
    const request = {
      url: this.#options.url,
      init: this.#requestFor(token),
      requester: client,
      question: digestOf(token),
    };
    const answer = await this.#provider.call(request, (body) => {
      if (!isAnswer(body)) throw new UnusableAnswer('the answer has no "active"');
      const odd = TIMES.find((name) => timeIn(body[name]) === 'odd');
      if (odd !== undefined) throw new UnusableAnswer(`"${odd}" of the answer is not a number`);
    });
    if (answer === 'unavailable') return { outcome: 'unavailable' };
    const claims = answer.body as Claims;
    const principal = this.#faultOf(claims, requestedAtMs) ?? readPrincipal(claims, this.#options.claims);
    if (typeof principal === 'string') return invalid(principal, timeIn(claims.nbf));
    const exp = timeIn(claims.exp);
    const expiresAtMs = typeof exp === 'number' ? exp * 1000 : undefined;
    return { outcome: 'known', principal, expiresAtMs, confirmedAtMs };
  }

  twinOf(token: string): string | undefined {
    return isSigned(token) ? twinOf(token) : undefined;
  }

  #requestFor(token: string): RequestInit {
    const { clientId, clientSecret, clientAuthentication } = this.#options;
    const form = new URLSearchParams({ token, token_type_hint: 'access_token' });
    const headers: Record<string, string> = { Accept: 'application/json' };
    if (clientAuthentication === 'basic') {
      headers.Authorization = `Basic ${basicCredentials(clientId, clientSecret)}`;
    } else {
      form.set('client_id', clientId);
      form.set('client_secret', clientSecret);
    }
    return { method: 'POST', headers, body: form };
  }

  /** An issuer does not say why a token is not active. */
  #faultOf({ active, iss, aud, ...times }: Claims, nowMs: number): TokenFault | undefined {
    const { issuer, audience } = this.#options;
    const nbf = timeIn(times.nbf);
    if (active !== true) return 'unknown-token';
    if (issuer !== undefined && iss !== undefined && iss !== issuer) return 'issuer';
    if (typeof nbf === 'number' && nbf * 1000 > nowMs) return 'not-yet-valid';
    const isForUs = audience === undefined || listOf(audience).some((name) => listOf(aud).includes(name));
    return isForUs ? undefined : 'audience';
  }
}

/** A token that is not valid yet is asked about again when it is. */
function invalid(fault: TokenFault, nbf: number | 'odd' | undefined): Verified {
  const validFromMs = fault === 'not-yet-valid' && typeof nbf === 'number' ? nbf * 1000 : undefined;
  return { outcome: 'invalid', isFinal: true, fault, validFromMs };
}

/** The members whose times are judged. */
const TIMES = ['exp', 'nbf'];

/**
 * A time in seconds (RFC 7662 section 2.2), or its digits as text, which some issuers send. Any other value is odd: the token would
 * seem to have no end.
 */
function timeIn(value: unknown): number | 'odd' | undefined {
  if (value === undefined || value === null) return undefined;
  const time = typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : value;
  return typeof time === 'number' ? time : 'odd';
}

function isAnswer(body: unknown): body is Claims {
  return typeof body === 'object' && body !== null && 'active' in body && typeof body.active === 'boolean';
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [value];
}

/** RFC 6749 section 2.3.1: id and secret are form-encoded before they are joined. */
function basicCredentials(id: string, secret: string): string {
  const encoded = [id, secret].map((one) => new URLSearchParams({ '': one }).toString().slice(1));
  return Buffer.from(encoded.join(':')).toString('base64');
}
