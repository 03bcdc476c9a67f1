/**
 * Ids of Accounts, Organizations and principals: they can be sent upstream unencoded in X-Account-Id, and written to logs and
 * terminals. None has a space or a control character.
 */
export const ID_PATTERN = '^[\\x21-\\x7e]{1,256}$';
export const ID_FORMAT = 'an id: printable ASCII without spaces, at most 256 characters';

const ID = new RegExp(ID_PATTERN);

export function isId(value: unknown): value is string {
  return typeof value === 'string' && ID.test(value);
}
