/* ui: the parts that views are made of. */

import { h } from './dom.js';
import { Problem } from './api.js';
import { sentence } from './format.js';
import { me } from './session.js';

/* -- what a state looks like: a word and a shape, the colour comes last -- */

const LOOKS = {
	active: ['●', 'ok'], delivered: ['✓', 'ok'], closed: ['●', 'ok'],
	done: ['✓', 'ok'], ready: ['●', 'ok'], answered: ['✓', 'ok'],
	delivering: ['↑', 'busy'], running: ['↑', 'busy'],
	'in flight': ['↑', 'busy'], pending: ['○', 'idle'],
	paused: ['‖', 'warn'], retrying: ['↻', 'warn'], retry: ['↻', 'warn'],
	half_open: ['◐', 'warn'], slowed: ['◐', 'warn'], limit: ['◐', 'idle'],
	rate: ['◐', 'idle'], order: ['○', 'idle'], idle: ['○', 'idle'],
	cancelled: ['–', 'idle'], deleted: ['–', 'idle'],
	dead: ['✕', 'bad'], open: ['✕', 'bad'], circuit: ['✕', 'bad'],
	disabled: ['✕', 'bad'], held: ['✕', 'bad'],
};

const WORDS = { half_open: 'half open', circuit: 'circuit open' };

export function badge(state, word) {
	const [shape, tone] = LOOKS[state] ?? ['○', 'idle'];
	return h('span', { class: `badge ${tone}` },
	    h('span', { 'aria-hidden': 'true', class: 'shape' }, shape),
	    word ?? WORDS[state] ?? state);
}

/* An answer's status, or how a try ended without one. */
export function outcome(status, ended) {
	if (status === null || status === undefined)
		return ended ? h('span', { class: 'badge bad' },
		    h('span', { 'aria-hidden': 'true', class: 'shape' }, '✕'),
		    ended.replaceAll('_', ' ')) : null;
	const tone = status < 300 ? 'ok' : status < 400 ? 'warn' : 'bad';
	return h('span', { class: `badge ${tone}` },
	    h('span', { 'aria-hidden': 'true', class: 'shape' },
	        tone === 'ok' ? '✓' : '✕'), `HTTP ${status}`);
}

/* -- the states that a view may be in besides having something to show -- */

export function loading(what = 'Loading') {
	return h('div', { class: 'panel quiet', role: 'status' },
	    h('span', { class: 'spinner', 'aria-hidden': 'true' }), `${what} …`);
}

export function empty(title, ...hint) {
	return h('div', { class: 'panel quiet' },
	    h('p', { class: 'quiet-title' }, title),
	    hint.length > 0 ? h('p', null, ...hint) : null);
}

/* `again` is what a button does about it, if something can be done. */
export function failed(error, again) {
	const [title, tone] = titleOf(error);
	return h('div', { class: `panel notice ${tone}`, role: 'alert' },
	    h('p', { class: 'quiet-title' }, title),
	    h('p', null, sentence(error.message)),
	    error instanceof Problem && error.status === 403 ? h('p', null,
	        `Your key has the role ${me()?.role ?? 'unknown'}.`) : null,
	    again ? h('button', { type: 'button', onclick: again }, 'Try again') : null);
}

function titleOf(error) {
	if (!(error instanceof Problem))
		return ['Postrider does not answer', 'warn'];
	if (error.status === 403)
		return ['Not for this key', 'warn'];
	if (error.status === 404)
		return ['Not found', 'warn'];
	return [error.title || 'It did not work', 'bad'];
}

/* -- small parts -- */

export function heading(title, ...actions) {
	return h('div', { class: 'heading' },
	    h('h1', { tabindex: '-1' }, title),
	    actions.flat().some(Boolean) ?
	        h('div', { class: 'actions' }, ...actions) : null);
}

export function crumbs(...steps) {
	return h('nav', { class: 'crumbs', 'aria-label': 'Where you are' },
	    h('ol', null, steps.map(([name, href]) =>
	        h('li', null, href ? h('a', { href }, name) :
	            h('span', { 'aria-current': 'page' }, name)))));
}

export function section(title, ...children) {
	return h('section', { class: 'block' },
	    h('h2', null, title), ...children);
}

/* Terms and what they are; null leaves one out. */
export function facts(...pairs) {
	return h('dl', { class: 'facts' }, pairs.filter(Boolean).map(([term, value]) =>
	    h('div', null, h('dt', null, term), h('dd', null, value))));
}

export function link(text, href, more = {}) {
	return h('a', { href, ...more }, text);
}

/* A button that puts a text on the clipboard. */
export function copier(text, what) {
	return h('button', { type: 'button', class: 'small', 'aria-label': `Copy ${what}`,
		onclick: async (event) => {
			const button = event.currentTarget;
			try {
				await navigator.clipboard.writeText(text);
				button.textContent = 'Copied';
			} catch {
				button.textContent = 'Select it, and copy by hand';
			}
		} }, 'Copy');
}

/* -- tables: at 360 px each row stands as a card, with its columns' names -- */

/* columns: { name, cell(row), class, sort }; `sorting` is { by, down, href(by) }. */
export function table(caption, columns, rows, { key, sorting } = {}) {
	return h('table', { class: 'grid', role: 'table' },
	    h('caption', { class: 'unseen' }, caption),
	    h('thead', { role: 'rowgroup' }, h('tr', { role: 'row' },
	        columns.map((column) => headCell(column, sorting)))),
	    h('tbody', { role: 'rowgroup' }, rows.map((row) =>
	        h('tr', { role: 'row', 'data-key': key ? key(row) : null },
	            columns.map((column) => h('td', { role: 'cell',
	                class: column.class, 'data-label': column.name },
	            h('div', null, column.cell(row))))))));
}

function headCell(column, sorting) {
	const isBy = sorting && column.sort && sorting.by === column.sort;
	const arrow = isBy ? (sorting.down ? ' ↓' : ' ↑') : '';
	return h('th', { role: 'columnheader', scope: 'col', class: column.class,
		'aria-sort': isBy ? (sorting.down ? 'descending' : 'ascending') : null },
	sorting && column.sort ? h('a', { href: sorting.href(column.sort) },
	    column.name, h('span', { 'aria-hidden': 'true' }, arrow)) : column.name);
}

/* -- forms -- */

/* A form's handler: `run` gets what was entered, and not twice at once. */
export function submitter(run) {
	let isRunning = false;
	return async (event) => {
		event.preventDefault();
		if (isRunning)
			return;
		isRunning = true;
		try {
			await run(new FormData(event.currentTarget));
		} finally {
			isRunning = false;
		}
	};
}

/* A labelled control; `control` makes it of the attributes that tie the two. */
export function field(name, label, control, { hint, error } = {}) {
	const id = `field-${name}`;
	const notes = [];
	if (hint)
		notes.push(h('p', { class: 'hint', id: `${id}-hint` }, hint));
	if (error)
		notes.push(h('p', { class: 'error', id: `${id}-error` }, sentence(error)));
	return h('div', { class: error ? 'field is-wrong' : 'field' },
	    h('label', { for: id }, label),
	    control({ id, name, 'aria-invalid': error ? 'true' : null,
	        'aria-describedby': notes.length > 0 ?
	            notes.map((note) => note.id).join(' ') : null }),
	    ...notes);
}

/* For a link in a form: what was entered and not shown yet goes, too. */
export function resetForm(event) {
	event.currentTarget.closest('form').reset();
}

export function select(value, options, more = {}) {
	return (given) => h('select', { ...more, ...given },
	    options.map(([option, text]) => h('option',
	        { value: option, selected: option === value }, text)));
}

export function input(value, more = {}) {
	return (given) => h('input', { value, autocomplete: 'off',
		spellcheck: 'false', ...more, ...given });
}

export function textarea(value, more = {}) {
	return (given) => h('textarea', { autocomplete: 'off', spellcheck: 'false',
		...more, ...given }, value);
}
