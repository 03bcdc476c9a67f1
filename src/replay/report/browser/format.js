const WHOLE = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });
const SHORT = new Intl.NumberFormat('en-US', { notation: 'compact', maximumFractionDigits: 1 });

export function count(value) {
  return WHOLE.format(value);
}

export function short(value) {
  return value !== 0 && Math.abs(value) < 10 ? String(Math.round(value * 100) / 100) : SHORT.format(value);
}

/** A share from 0 to 1 as a percentage, never rounded to nothing. */
export function percent(share) {
  if (share === 0) return '0 %';
  if (share < 0.0001) return '<0.01 %';
  return `${Math.floor(share * 10_000) / 100} %`;
}

export function time(ms) {
  return new Date(ms).toISOString().slice(0, 19).replace('T', ' ');
}

/** An element with text or children; text is never read as HTML. */
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

export function byId(id) {
  return document.getElementById(id);
}
