/** The combined format of nginx and Apache, and the common format before its last two fields. */
const COMBINED =
  /^(\S+) \S+ (\S+) \[([^\]]+)\] "((?:[^"\\]|\\.)*)" (\d{3}) (\S+)(?: "((?:[^"\\]|\\.)*)" "((?:[^"\\]|\\.)*)")?/;

export type LogFields = Readonly<Record<string, unknown>>;

/** A line of the combined format, by the names of nginx's variables. Undefined for any other line. */
export function combinedFields(line: string): LogFields | undefined {
  const match = COMBINED.exec(line);
  if (match === null) return undefined;
  const [, remote_addr, remote_user, time_local, request = '', status, bytes, http_referer, http_user_agent] =
    match;
  return {
    remote_addr,
    remote_user,
    time_local,
    request,
    ...requestLine(request),
    status: Number(status),
    body_bytes_sent: Number(bytes),
    http_referer,
    http_user_agent,
  };
}

/** Names of AWS for the fields of an Application Load Balancer's access log, in their order. */
const ALB_FIELDS = (
  'type time elb client target request_processing_time target_processing_time response_processing_time ' +
  'elb_status_code target_status_code received_bytes sent_bytes request user_agent ssl_cipher ssl_protocol ' +
  'target_group_arn trace_id domain_name chosen_cert_arn matched_rule_priority request_creation_time ' +
  'actions_executed redirect_url error_reason'
).split(' ');

const ALB_TOKEN = /"((?:[^"\\]|\\.)*)"|(\S+)/g;

/** Number of fields up to the request line. A line with fewer is not in this format. */
const ALB_LEAST = 13;

/** A line of an Application Load Balancer's access log, by AWS's names. Undefined for any other line. */
export function albFields(line: string): LogFields | undefined {
  const tokens = [...line.matchAll(ALB_TOKEN)].map(([, quoted, plain]) => quoted ?? plain ?? '');
  if (tokens.length < ALB_LEAST) return undefined;
  const fields = Object.fromEntries(ALB_FIELDS.map((name, index) => [name, tokens[index]]));
  return { ...fields, ...requestLine(fields.request ?? '') };
}

/** `GET https://host:443/things?x=1 HTTP/1.1` as method and URI. */
function requestLine(request: string): { readonly method: string; readonly uri: string } {
  const [method = '', uri = ''] = request.split(' ');
  return { method, uri };
}

/** The JSON object in a line, after any prefix. Undefined if there is none. */
export function jsonFields(line: string): LogFields | undefined {
  const start = line.indexOf('{');
  if (start === -1) return undefined;
  try {
    return JSON.parse(start === 0 ? line : line.slice(start)) as LogFields;
  } catch {
    return undefined;
  }
}

/** The values that a mapping can take from a line. */
const MAPPED = [
  'time',
  'durationMs',
  'durationSeconds',
  'method',
  'path',
  'account',
  'organization',
  'principal',
  'address',
  'status',
  'cost',
] as const;

export type MappedName = (typeof MAPPED)[number];

/** The path of each value, as the names of nested fields. */
export type Mapping = Readonly<Partial<Record<MappedName, readonly string[]>>>;

/**
 * `account=.jwt.sub,path=.uri` as a mapping. A name with a dot in it is quoted: `.headers."x.account"`.
 * Returns a sentence if it is invalid.
 */
export function parseMapping(text: string): Mapping | string {
  const mapping: Partial<Record<MappedName, readonly string[]>> = {};
  for (const part of text.split(/,(?=[A-Za-z]+=)/)) {
    const [, name = '', path = ''] = /^\s*([A-Za-z]+)=(.+?)\s*$/.exec(part) ?? [];
    if (!isMapped(name)) return `"${part}" does not start with one of ${MAPPED.join(', ')} and =`;
    const names = parsePath(path);
    if (names === undefined) return `"${path}" is not a path such as .jwt.sub`;
    mapping[name] = names;
  }
  return mapping;
}

function isMapped(name: string): name is MappedName {
  return (MAPPED as readonly string[]).includes(name);
}

function parsePath(path: string): readonly string[] | undefined {
  const written = path.startsWith('.') ? path : `.${path}`;
  if (!/^(?:\.(?:"[^"]+"|[^."]+))+$/.test(written)) return undefined;
  return [...written.matchAll(/\.(?:"([^"]+)"|([^."]+))/g)].map(([, quoted, plain]) => quoted ?? plain ?? '');
}

/** The field at a path, or undefined if it does not exist. */
export function fieldAt(fields: LogFields, path: readonly string[] | undefined): unknown {
  if (path === undefined) return undefined;
  let value: unknown = fields;
  for (const name of path) {
    if (typeof value !== 'object' || value === null) return undefined;
    value = (value as LogFields)[name];
  }
  return value;
}
