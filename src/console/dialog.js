/* dialog: asking before, and telling after. */

import { h, paint } from './dom.js';
import { sentence } from './format.js';
import { failed } from './ui.js';

/* Say what came of something; it stays until it is read or ten seconds. */
export function tell(text, tone = 'ok') {
	const note = h('div', { class: `toast ${tone}` },
	    h('span', null, sentence(text)),
	    h('button', { type: 'button', class: 'small', 'aria-label': 'Dismiss',
	        onclick: () => note.remove() }, '×'));
	document.getElementById('toasts').append(note);
	setTimeout(() => note.remove(), 10000);
}

/* Ask, and do it.
 *
 *   title, lines     what is about to happen, in words that name the consequence
 *   fields           what else is to be entered (elements)
 *   action           the button's word
 *   danger           it cannot be taken back
 *   run(form)        does it, with a FormData; returns what to tell, or an element
 *                    that stays until it is closed (a secret that is shown once)
 *
 * Resolves to true once it is done, false if it was not. */
export function ask({ title, lines, fields = [], action, danger = false, run }) {
	return new Promise((resolve) => {
		let isDone = false;
		let isRunning = false;
		const body = h('div', { class: 'dialog-body' });
		const dialog = h('dialog', { 'aria-labelledby': 'dialog-title',
			onclose: () => {
				/* It comes back with what came of it, which may be a secret. */
				if (isRunning)
					return;
				dialog.remove();
				resolve(isDone);
			} }, body);
		const cancel = h('button', { type: 'button',
			onclick: () => dialog.close() }, 'Cancel');
		const confirm = h('button', { type: 'submit',
			class: danger ? 'danger' : 'primary' }, action);
		const wrong = h('div');
		const setRunning = (is) => {
			isRunning = cancel.disabled = confirm.disabled = is;
			if (!is && !dialog.open)
				dialog.showModal();
		};
		const submit = async (event) => {
			event.preventDefault();
			setRunning(true);
			try {
				const result = await run(new FormData(event.target));
				setRunning(false);
				isDone = true;
				finish(dialog, body, title, result);
			} catch (error) {
				setRunning(false);
				paint(wrong, failed(error));
				showAt(event.target, error);
			}
		};
		body.append(h('form', { onsubmit: submit },
		    h('h2', { id: 'dialog-title' }, title),
		    ...lines.map((line) => h('p', null, line)), ...fields, wrong,
		    h('div', { class: 'actions' }, cancel, confirm)));
		document.body.append(dialog);
		dialog.showModal();
		/* Where there is something to enter, there; and Enter must not be what
		 * destroys. */
		(body.querySelector('input, select') ?? (danger ? cancel : confirm)).focus();
	});
}

/* Mark the field that the server's pointer names. */
function showAt(form, error) {
	for (const control of form.querySelectorAll('.is-wrong')) {
		control.classList.remove('is-wrong');
		control.querySelector('[name]').removeAttribute('aria-invalid');
	}
	const name = (error.pointer ?? '').slice(1);
	const control = name === '' ? null : form.elements.namedItem(name);
	if (control === null)
		return;
	control.setAttribute('aria-invalid', 'true');
	control.closest('.field').classList.add('is-wrong');
	control.focus();
}

function finish(dialog, body, title, result) {
	if (!(result instanceof Node)) {
		dialog.close();
		tell(result);
		return;
	}
	const close = h('button', { type: 'button', class: 'primary',
		onclick: () => dialog.close() }, 'Close');
	body.replaceChildren(h('h2', { id: 'dialog-title' }, title), result,
	    h('div', { class: 'actions' }, close));
	close.focus();
}
