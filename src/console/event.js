/* event: what was posted once, and what became of it at each endpoint. */

import { h, keep, paint } from './dom.js';
import { get, getText, path } from './api.js';
import { to } from './router.js';
import { isAdmin, mayRead } from './session.js';
import { count, plural, time } from './format.js';
import { badge, copier, crumbs, empty, facts, failed, heading, link, loading, outcome, section,
	table } from './ui.js';
import { DONE } from './delivery.js';

const COLUMNS = [
	{ name: 'Delivery', cell: (d) => mayRead() ? link(d.id,
	    to(['subscriptions', d.subscription_id, 'deliveries', d.id])) : d.id },
	{ name: 'Subscription', cell: (d) => mayRead() ? link(d.subscription_id,
	    to(['subscriptions', d.subscription_id])) : d.subscription_id },
	{ name: 'State', cell: (d) => badge(d.state) },
	{ name: 'Attempts', class: 'num', cell: (d) => count(d.attempts) },
	{ name: 'Answer', cell: (d) => outcome(d.status) ?? '–' },
];

/* Byte for byte, as receivers get it.  Not every key is shown it, it is kept for a
 * while only, and it is not fetched before somebody asks. */
function payload(id) {
	const show = async (event) => {
		const details = event.currentTarget;
		const box = details.querySelector('.payload');
		if (!details.open || box.querySelector('pre') !== null)
			return;
		try {
			const text = await getText(path`/v1/events/${id}/payload`);
			paint(box, h('pre', { class: 'raw', tabindex: '0' }, text),
			    h('p', null, copier(text, 'payload')));
		} catch (error) {
			paint(box, failed(error));
		}
	};
	return keep(section('Payload', h('details', { ontoggle: show },
	    h('summary', null, 'Show what is sent'), h('div', { class: 'payload' }))));
}

function view(event, body) {
	return [
		crumbs(['Events', to(['events'])], [event.id]),
		heading(['Event ', h('span', { class: 'url' }, event.id)]),
		section('What it is', facts(
		    ['Type', event.type],
		    ['Asset', event.asset === null ? 'none: it has no order' :
		        mayRead() ? link(event.asset, to(['assets', event.asset])) : event.asset],
		    ['Accepted', time(event.accepted_at)],
		    ['For', plural(event.fan_out, 'endpoint', 'endpoints')])),
		event.deliveries.length === 0 ? empty('No endpoint wanted it',
		    'When it was accepted, no active subscription had its type.') :
		    section('Deliveries', h('div', { class: 'table-wrap' }, table('Deliveries',
		        COLUMNS, event.deliveries, { key: (d) => d.id }))),
		body,
	];
}

export async function open(place) {
	const { event: id } = place.params;
	const body = isAdmin() ? payload(id) : null;
	let isDone = false;

	place.paint(heading('Event'), loading());
	place.live(() => isDone ? 15000 : 2000, async (signal) => {
		const event = await get(path`/v1/events/${id}`, signal);
		isDone = event.deliveries.every((d) => DONE.has(d.state));
		place.title(`Event ${id}`);
		place.paint(view(event, body));
	});
}
