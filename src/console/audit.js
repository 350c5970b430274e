/* audit: who changed what, for operators. */

import { h } from './dom.js';
import { get, query } from './api.js';
import { filter, to } from './router.js';
import { fromLocal, time, toLocal } from './format.js';
import { empty, field, heading, input, link, loading, resetForm, table } from './ui.js';

const TEXTS = [['tenant', 'Tenant'], ['actor', 'Actor'], ['action', 'Action'],
	['subject', 'Subject']];

function filters(asked) {
	const submit = (event) => {
		event.preventDefault();
		const form = Object.fromEntries(new FormData(event.currentTarget));
		filter(['audit'], { ...form, since: fromLocal(form.since),
			until: fromLocal(form.until) });
	};
	return h('form', { class: 'filters panel', role: 'search', onsubmit: submit },
	    TEXTS.map(([name, label]) => field(name, label, input(asked.get(name) ?? ''))),
	    ['since', 'until'].map((name) => field(name, name === 'since' ? 'Since' : 'Before',
	        input(toLocal(asked.get(name)), { type: 'datetime-local', step: '1' }))),
	    h('div', { class: 'actions' },
	        h('button', { type: 'submit', class: 'primary' }, 'Show'),
	        link('Clear', to(['audit']), { onclick: resetForm })));
}

function narrow(asked, name, value) {
	return value === null ? '–' : link(value, to(['audit'],
	    { ...Object.fromEntries(asked), [name]: value, before: '' }),
	{ 'aria-label': `Only ${name} ${value}` });
}

function detail(entry) {
	const text = JSON.stringify(entry.detail, null, 1);
	return h('details', null, h('summary', null, 'Detail'),
	    h('pre', { class: 'raw' }, text),
	    h('p', { class: 'hint' }, `From ${entry.source ?? 'here'}. Hash ${entry.hash}`));
}

function columns(asked) {
	return [
		{ name: 'No.', class: 'tight', cell: (e) => e.id },
		{ name: 'When', class: 'tight', cell: (e) => time(e.at) },
		{ name: 'Who', cell: (e) => narrow(asked, 'actor', e.actor) },
		{ name: 'Tenant', cell: (e) => narrow(asked, 'tenant', e.tenant) },
		{ name: 'Did', cell: (e) => narrow(asked, 'action', e.action) },
		{ name: 'To', cell: (e) => narrow(asked, 'subject', e.subject) },
		{ name: 'Detail', cell: detail },
	];
}

export async function open(place) {
	const asked = place.query;
	const wanted = Object.fromEntries(['tenant', 'actor', 'action', 'subject', 'since',
		'until', 'before'].map((name) => [name, asked.get(name)]));

	if (document.querySelector('#view .filters') === null)
		place.paint(heading('Audit'), loading());
	place.live(asked.get('before') ? 60000 : 10000, async (signal) => {
		const page = await get(`/v1/audit${query({ ...wanted, limit: 50 })}`, signal);
		const rest = Object.fromEntries(asked);
		place.paint(heading('Audit'), filters(asked),
		    page.audit.length === 0 ? empty(page.next_before ?
		        'None among those that were looked at' : 'None fits these filters') :
		        h('div', { class: 'panel table-wrap' }, table('Audit, the newest first',
		            columns(asked), page.audit, { key: (e) => e.id })),
		    h('div', { class: 'actions' },
		        asked.get('before') ? link('Newest', to(['audit'], { ...rest, before: '' }),
		            { class: 'button small' }) : null,
		        page.next_before ? link('Older', to(['audit'],
		            { ...rest, before: page.next_before }), { class: 'button small' }) : null));
	});
}
