import { exactDuration, parseDuration } from '../../../domain/duration.ts';
import { element } from './dom.ts';

export function textInput(attributes: Readonly<Record<string, string>> = {}): HTMLInputElement {
  return element('input', { type: 'text', required: true, maxlength: 200, spellcheck: false, ...attributes });
}

/** @param label what the field is for; shown in it, and read out by screen readers */
export function searchInput(label: string): HTMLInputElement {
  return element('input', {
    type: 'search',
    placeholder: label,
    'aria-label': label,
    autocomplete: 'off',
    spellcheck: false,
  });
}

export function choiceInput(options: Readonly<Record<string, string>>, chosen: string): HTMLSelectElement {
  const nodes = Object.entries(options).map(([value, text]) =>
    element('option', { value, selected: value === chosen }, text),
  );
  return element('select', {}, ...nodes);
}

/** A choice of durations, which are written as the admin port reads them: `1h`. */
export function durationInput(choices: readonly string[], chosen: string): HTMLSelectElement {
  return choiceInput(Object.fromEntries(choices.map((one) => [one, durationText(one)])), chosen);
}

/** `1h` as `1 h`. */
export function durationText(duration: string): string {
  return exactDuration(parseDuration(duration) ?? 0);
}
