/** The combined format of nginx and Apache, and the common format before its last two fields. */
const COMBINED =
  /^(\S+) \S+ (\S+) \[([^\]]+)\] "((?:[^"\\]|\\.)*)" (\d{3}) (\S+)(?: "((?:[^"\\]|\\.)*)" "((?:[^"\\]|\\.)*)")?/;

export type Fields = Readonly<Record<string, unknown>>;

/** A line of the combined format, by the names of nginx's variables. Undefined for any other line. */
export function combinedFields(line: string): Fields | undefined {
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
const ALB_FIELDS = [
  'type',
  'time',
  'elb',
  'client',
  'target',
  'request_processing_time',
  'target_processing_time',
  'response_processing_time',
  'elb_status_code',
  'target_status_code',
  'received_bytes',
  'sent_bytes',
  'request',
  'user_agent',
  'ssl_cipher',
  'ssl_protocol',
  'target_group_arn',
  'trace_id',
  'domain_name',
  'chosen_cert_arn',
  'matched_rule_priority',
  'request_creation_time',
  'actions_executed',
  'redirect_url',
  'error_reason',
] as const;

const ALB_TOKEN = /"((?:[^"\\]|\\.)*)"|(\S+)/g;

/** Number of fields up to the request line. A line with fewer is not in this format. */
const ALB_LEAST = 13;

/** A line of an Application Load Balancer's access log, by AWS's names. Undefined for any other line. */
export function albFields(line: string): Fields | undefined {
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
export function jsonFields(line: string): Fields | undefined {
  const start = line.indexOf('{');
  if (start === -1) return undefined;
  try {
    return JSON.parse(start === 0 ? line : line.slice(start)) as Fields;
  } catch {
    return undefined;
  }
}
