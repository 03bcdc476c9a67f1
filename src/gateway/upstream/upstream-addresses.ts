/** Rewrites what a response says about the upstream's own address, so that clients stay with the gateway. */
import type { ClientOrigin, Received, TrustedProxies } from '../../http/message/fields/forwarded.ts';

/** The start of `http://authority/rest` or `//authority/rest`, up to the rest (RFC 3986 section 4.2). */
const WITH_AUTHORITY = /^(https?:)?\/\/([^/?#\\]*)/i;

/** What browsers drop wherever it is in a URL (https://url.spec.whatwg.org/#concept-basic-url-parser). */
const DROPPED = /[\t\n\r]/g;

const COOKIE_DOMAIN = /;\s*domain\s*=([^;]*)/gi;

/** Translates the addresses of one upstream. */
export class UpstreamAddresses {
  readonly #upstream: URL;
  readonly #basePath: string;
  readonly #trusted: TrustedProxies;

  /** @param basePath the path of the upstream's URL, without a trailing slash; clients do not see it */
  constructor(upstream: URL, basePath: string, trusted: TrustedProxies) {
    this.#upstream = upstream;
    this.#basePath = basePath;
    this.#trusted = trusted;
  }

  /**
   * The value that a client gets of a field. `Location` and `Content-Location` that name the upstream get the origin that
   * the client used; a cookie's `Domain` that names it gets that origin's host. Everything else stays as it is.
   *
   * @param name in lower case: one of these two, or `set-cookie`
   */
  translate(name: string, value: string, received: Received): string {
    const origin = this.#trusted.originOf(received);
    return name === 'set-cookie' ? this.#cookie(value, origin) : this.#reference(value, origin);
  }

  /** Reads the value as a browser does: `/base/<tab>/host` without `/base` would be `//host`. */
  #reference(value: string, origin: ClientOrigin | undefined): string {
    const read = value.replace(DROPPED, '').replace(/^ +/, '');
    const [start = '', scheme, authority] = WITH_AUTHORITY.exec(read) ?? [];
    if (authority === undefined) {
      const path = read.startsWith('/') ? pathOnly(this.#withoutBase(read)) : read;
      return path === read ? value : path;
    }
    if (!this.#isUpstream(scheme ?? this.#upstream.protocol, authority)) return value;
    const rest = read.slice(start.length);
    const path = this.#withoutBase(rest.startsWith('/') ? rest : `/${rest}`);
    return origin === undefined ? pathOnly(path) : `${origin.scheme}://${origin.host}${path}`;
  }

  /**
   * Whether a URL names the upstream. The scheme may differ: a service behind TLS or behind the gateway often cannot know
   * which one its clients use.
   */
  #isUpstream(scheme: string, authority: string): boolean {
    if (!URL.canParse(`${scheme}//${authority}`)) return false;
    const { hostname, port } = new URL(`${scheme}//${authority}`);
    return hostname === this.#upstream.hostname && port === this.#upstream.port;
  }

  #withoutBase(path: string): string {
    const base = this.#basePath;
    if (base === '' || !path.startsWith(base)) return path;
    const rest = path.slice(base.length);
    if (rest.startsWith('/')) return rest;
    return rest === '' || rest.startsWith('?') || rest.startsWith('#') ? `/${rest}` : path;
  }

  /** A domain that the client's host is not part of, but the upstream's is: browsers would refuse the cookie. */
  #cookie(value: string, origin: ClientOrigin | undefined): string {
    const client = origin === undefined ? '' : new URL(`${origin.scheme}://${origin.host}`).hostname;
    return value.replaceAll(COOKIE_DOMAIN, (attribute, named: string) => {
      const domain = named.trim().replace(/^\./, '').toLowerCase();
      if (!isWithin(this.#upstream.hostname, domain) || isWithin(client, domain)) return attribute;
      return client === '' ? '' : `; Domain=${client}`;
    });
  }
}

/** Two slashes at the front would make the first segment a host. */
function pathOnly(path: string): string {
  return path.replace(/^[/\\]{2,}/, '/');
}

/** RFC 6265 section 5.1.3. */
function isWithin(host: string, domain: string): boolean {
  return host === domain || (domain !== '' && host.endsWith(`.${domain}`));
}
