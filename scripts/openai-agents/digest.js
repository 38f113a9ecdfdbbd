import { createHash } from 'node:crypto';

/**
 * digestOf is the digest of a call's arguments, as runner-policy writes it: SHA-256 of the form of RFC 8785.
 * @param {string} [text] the arguments as JSON; without any they are {}
 * @returns {string | undefined} undefined if they are no object, or have no such form
 */
export function digestOf(text) {
  try {
    const value = text === undefined || text === '' ? {} : JSON.parse(text);
    if (value === null || typeof value !== 'object' || Array.isArray(value)) return undefined;
    return `sha256:${createHash('sha256').update(canonical(value)).digest('hex')}`;
  } catch {
    return undefined;
  }
}

// canonical writes a value: JSON.stringify has the numbers and escapes of RFC 8785, and sort() its order, of UTF-16 units.
function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (value !== null && typeof value === 'object') {
    return `{${Object.keys(value).sort().map((key) => `${canonical(key)}:${canonical(value[key])}`).join(',')}}`;
  }
  if (typeof value === 'string' && !value.isWellFormed()) throw new TypeError('a lone surrogate');
  return JSON.stringify(value);
}
