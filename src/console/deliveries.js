/* deliveries: the log, by state, type, asset, event and time. */

import { h } from './dom.js';
import { get, path, query } from './api.js';
import { filter, to } from './router.js';
import { mayPost } from './session.js';
import { count, fromLocal, time, toLocal } from './format.js';
import { badge, empty, field, heading, input, link, loading, outcome, resetForm,
	select, table } from './ui.js';
import { listAll } from './subscriptions.js';

const PAGE = 50;
/* All subscriptions at once: a question each, so not for many. */
export const MOST_AT_ONCE = 12;
const STATES = ['pending', 'delivering', 'retrying', 'delivered', 'dead', 'cancelled'];
const ASKED = ['state', 'type', 'asset', 'event', 'since', 'until'];

function compareIds(a, b) {
	return BigInt(a.id) < BigInt(b.id) ? 1 : -1;
}

/* One page of some subscriptions' logs, the newest first.  Ids grow with time
 * whatever the subscription, so pages can be merged: down to where the first of
 * them breaks off. */
export async function page(ids, asked, after, signal, limit = PAGE) {
	const answers = await Promise.all(ids.map((id) => get(
	    `${path`/v1/subscriptions/${id}/deliveries`}${
	        query({ ...asked, limit, after })}`, signal)));
	const ends = answers.map((each) => each.next_after).filter((end) => end !== null)
	    .map(BigInt);
	const end = ends.length > 0 ? ends.reduce((a, b) => a > b ? a : b) : 0n;
	const found = answers.flatMap((each) => each.deliveries)
	    .filter((each) => BigInt(each.id) >= end).sort(compareIds);
	const shown = found.slice(0, limit);
	if (found.length > limit)
		return { shown, next: shown.at(-1).id };
	return { shown, next: ends.length > 0 ? String(end) : null };
}

function filters(asked, subscriptions) {
	const submit = (event) => {
		event.preventDefault();
		const form = Object.fromEntries(new FormData(event.currentTarget));
		filter(['deliveries'], { ...form, since: fromLocal(form.since),
			until: fromLocal(form.until) });
	};
	const text = (name, label) => field(name, label, input(asked.get(name) ?? ''));
	const moment = (name, label) => field(name, label, input(toLocal(asked.get(name)),
	    { type: 'datetime-local', step: '1' }));
	return h('form', { class: 'filters panel', role: 'search', onsubmit: submit },
	    field('subscription', 'Subscription', select(asked.get('subscription') ?? '',
	        [['', subscriptions.length > MOST_AT_ONCE ? 'choose one' : 'all'],
	            ...subscriptions.map((s) => [s.id, s.url])])),
	    field('state', 'State', select(asked.get('state') ?? '',
	        [['', 'any'], ...STATES.map((state) => [state, state])])),
	    text('event', 'Event id'), text('type', 'Type'), text('asset', 'Asset'),
	    moment('since', 'Accepted since'), moment('until', 'Accepted before'),
	    h('div', { class: 'actions' },
	        h('button', { type: 'submit', class: 'primary' }, 'Show'),
	        link('Clear', to(['deliveries']), { onclick: resetForm })));
}

export function deliveryColumns(urls) {
	return [
		{ name: 'Event', class: 'wide', cell: (d) => [link(d.event_id,
		    to(['subscriptions', d.subscription_id, 'deliveries', d.id])),
		h('div', { class: 'hint' }, d.type)] },
		{ name: 'Asset', class: 'long', cell: (d) => d.asset === null ? '–' :
		    link(d.asset, to(['assets', d.asset])) },
		urls ? { name: 'Endpoint', class: 'wide', cell: (d) => link(urls.get(d.subscription_id) ??
		    d.subscription_id, to(['subscriptions', d.subscription_id]),
		{ class: 'url' }) } : null,
		{ name: 'State', class: 'long', cell: (d) => [badge(d.state), d.why && d.why !== d.state ?
		    h('div', { class: 'hint' }, d.behind !== null ? ['behind ',
		        link('an earlier one', to(['subscriptions', d.subscription_id,
		            'deliveries', d.behind]))] :
		        [d.why, d.until ? [' until ', time(d.until)] : null]) : null] },
		{ name: 'Last answer', cell: (d) => [outcome(d.last_status ?? d.status),
			d.last_error && d.last_status === null ? d.last_error : null] },
		{ name: 'Attempts', class: 'num', cell: (d) => [count(d.attempts), d.replayed ?
		    h('div', { class: 'hint' }, `generation ${d.generation}`) : null] },
		{ name: 'Accepted', class: 'tight', cell: (d) => time(d.accepted_at) },
	].filter(Boolean);
}

function pager(asked, { shown, next }) {
	const rest = Object.fromEntries(asked);
	return h('div', { class: 'pager' },
	    h('span', { class: 'hint' }, `${count(shown.length)} shown, the newest first.`),
	    h('span', { class: 'actions' },
	        asked.get('after') ? link('Newest', to(['deliveries'], { ...rest, after: '' }),
	            { class: 'button small' }) : null,
	        next !== null ? link('Older', to(['deliveries'], { ...rest, after: next }),
	            { class: 'button small' }) : null));
}

function nothing(asked, next) {
	if (next !== null)
		return empty('None among those that were looked at',
		    'The log goes on further back: choose Older to look on.');
	return empty([...asked.keys()].length > 0 ? 'None fits these filters' :
	    'Nothing was delivered yet',
	mayPost() ? link('Send an event', to(['submit'])) : null);
}

export async function open(place) {
	const asked = place.query;
	const chosen = asked.get('subscription') ?? '';

	if (document.querySelector('#view .filters') === null)
		place.paint(heading('Deliveries'), loading());
	const { all } = await listAll(place.signal);
	const urls = new Map(all.map((s) => [s.id, s.url]));
	const top = () => [heading('Deliveries'), filters(asked, all)];
	if (chosen === '' && all.length > MOST_AT_ONCE) {
		place.paint(top(), empty('Choose a subscription',
		    `There are ${count(all.length)}: their logs are shown one at a time.`));
		return;
	}
	const ids = chosen === '' ? all.map((s) => s.id) : [chosen];
	const wanted = Object.fromEntries(ASKED.map((name) => [name, asked.get(name)]));
	place.live(asked.get('after') ? 30000 : 4000, async (signal) => {
		const found = await page(ids, wanted, asked.get('after'), signal);
		place.paint(top(), found.shown.length === 0 ? nothing(asked, found.next) :
		    h('div', { class: 'panel table-wrap is-flat' }, table('Deliveries',
		        deliveryColumns(urls), found.shown, { key: (d) => d.id })),
		pager(asked, found));
	});
}
