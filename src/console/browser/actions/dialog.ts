import { AdminApiError, ask, hasToken, keepToken } from '../api.ts';
import { byId, element, setText } from '../widgets/dom.ts';
import { textInput } from '../widgets/inputs.ts';

/** A field of a dialog. */
export interface Field {
  readonly name: string;
  readonly label: string;
  readonly control: HTMLInputElement | HTMLSelectElement;
  readonly hint?: string;
}

const WHO = 'weir-operator';

const dialog = byId('dialog') as HTMLDialogElement;
let changed: () => void = () => {};

/** `listener` is called after each action that was carried out. */
export function onAction(listener: () => void): void {
  changed = listener;
}

/** Asks who acts and why, and acts only after the button that names the action was pressed. */
export function confirmAction(action: {
  readonly title: string;
  /** What will happen, in a sentence. Read again whenever a field changes. */
  summary(values: ReadonlyMap<string, string>): string;
  readonly fields: readonly Field[];
  /** The text of the button. */
  readonly confirm: string;
  readonly isDangerous?: boolean;
  /** Throws an ApiError, whose message is shown. Returns what to show afterwards. */
  carryOut(values: ReadonlyMap<string, string>): Promise<string>;
}): void {
  const { title, summary, fields, confirm, isDangerous, carryOut } = action;
  const by = textInput({ value: localStorage.getItem(WHO) ?? '', autocomplete: 'username' });
  const why = textInput({ placeholder: 'For the audit log' });
  const all: readonly Field[] = [
    ...fields,
    { name: 'why', label: 'Why', control: why },
    { name: 'by', label: 'Your name', control: by },
  ];
  const sentence = element('p', { class: 'sentence' });
  const show = () => setText(sentence, summary(valuesOf(all)));
  openDialog(title, [sentence, ...all.map(fieldNode)], {
    confirm,
    isDangerous: isDangerous ?? false,
    async act() {
      localStorage.setItem(WHO, by.value);
      showNotice(await carryOut(valuesOf(all)));
      changed();
    },
  });
  for (const { control } of all) control.addEventListener('input', show);
  show();
}

const FIRST_ASKED =
  'This console is for the operators of the gateway, and opens with the admin token. You find it in weir.yaml (admin.token), in the file that admin.tokenFile names, or in WEIR_ADMIN_TOKEN; in Kubernetes, in the Secret of the release.';

/**
 * Asks for the admin token and resolves once it has been given.
 *
 * @param message why the token that was given before is refused
 */
export function askForToken(message: string): Promise<void> {
  const token = element('input', {
    type: 'password',
    required: true,
    autocomplete: 'current-password',
    spellcheck: false,
  });
  return new Promise((resolve) => {
    openDialog(
      'Admin token',
      [
        element('p', { class: 'sentence' }, hasToken() ? message : FIRST_ASKED),
        fieldNode({
          name: 'token',
          label: 'Token',
          control: token,
          hint: 'Kept in this tab until you close it.',
        }),
      ],
      {
        confirm: 'Open the console',
        isDangerous: false,
        isRequired: true,
        async act() {
          keepToken(token.value.trim());
          // What the files say, because live limits cannot be read while Redis is away.
          await ask('plans');
          resolve();
        },
      },
    );
  });
}

function openDialog(
  title: string,
  content: readonly Node[],
  confirmation: {
    readonly confirm: string;
    readonly isDangerous: boolean;
    /** Whether it cannot be dismissed. */
    readonly isRequired?: boolean;
    act(): Promise<void>;
  },
): void {
  const { confirm, isDangerous, isRequired = false, act } = confirmation;
  const problem = element('p', { class: 'problem', role: 'alert', hidden: true });
  const submit = element('button', { type: 'submit', class: isDangerous ? 'danger' : 'primary' }, confirm);
  const cancel = element('button', { type: 'button', class: 'quiet', hidden: isRequired }, 'Cancel');
  const form = element(
    'form',
    {},
    element('h2', { id: 'dialog-title' }, title),
    ...content,
    problem,
    element('div', { class: 'buttons' }, cancel, submit),
  );
  // While an action is carried out, its dialog may be closed, and another one may be opened.
  const isShown = () => dialog.open && form.isConnected;
  cancel.addEventListener('click', () => dialog.close());
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    submit.disabled = true;
    try {
      await act();
      if (isShown()) {
        dialog.onclose = null;
        dialog.close();
      }
    } catch (error) {
      const text = error instanceof AdminApiError ? error.message : 'The gateway does not answer.';
      problem.hidden = false;
      problem.textContent = text;
      if (!isShown()) showNotice(text);
    }
    submit.disabled = false;
  });
  dialog.replaceChildren(form);
  dialog.onclose = isRequired ? () => dialog.showModal() : null;
  if (!dialog.open) dialog.showModal();
}

function fieldNode({ name, label, control, hint }: Field): HTMLElement {
  control.name = name;
  const more = hint === undefined ? [] : [element('small', { class: 'muted' }, hint)];
  return element('label', { class: 'field' }, element('span', {}, label), control, ...more);
}

function valuesOf(fields: readonly Field[]): ReadonlyMap<string, string> {
  return new Map(fields.map(({ name, control }) => [name, control.value.trim()]));
}

/** Who acts and why, as the query of a DELETE. */
export function reasonQuery(values: ReadonlyMap<string, string>): string {
  return `${new URLSearchParams({ why: values.get('why') ?? '', by: values.get('by') ?? '' })}`;
}

let hiding: number | undefined;

/** Shows a line at the foot of the page for a while. */
export function showNotice(text: string): void {
  const notice = byId('notice');
  notice.hidden = false;
  setText(notice, text);
  clearTimeout(hiding);
  hiding = window.setTimeout(() => {
    notice.hidden = true;
  }, 8_000);
}
