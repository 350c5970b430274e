/* subscriptions: all endpoints of the tenant, and how each is. */

import { h } from './dom.js';
import { get, query } from './api.js';
import { filter, to } from './router.js';
import { isAdmin } from './session.js';
import { count, percent, seconds, time } from './format.js';
import { badge, empty, field, heading, input, link, loading, select, table } from './ui.js';

const PAGE = 200;
const PAGES = 10;
const LIST_EVERY = 30000;

/* Every subscription, up to what one can look at; and if there are more. */
export async function listAll(signal) {
	const all = [];
	let after = '';
	for (let page = 0; page < PAGES; page++) {
		const answer = await get(
		    `/v1/subscriptions${query({ limit: PAGE, after })}`, signal);
		all.push(...answer.subscriptions);
		after = answer.next_after;
		if (after === null)
			return { all, more: false };
	}
	return { all, more: true };
}

/* How each endpoint is, by its id, in the order of their trouble. */
async function healthById(signal) {
	const { endpoints } = await get('/v1/state?limit=100', signal);
	return new Map(endpoints.map((each, rank) =>
	    [each.subscription_id, { ...each, rank }]));
}

function isTroubled({ subscription, health }) {
	return subscription.state !== 'active' || (health !== undefined &&
	    (health.circuit !== 'closed' || health.slowed_to !== null ||
	        health.held > 0 || health.dead > 0 || health.later > 0));
}

const SORTS = {
	trouble: (row) => row.health?.rank ?? Infinity,
	url: (row) => row.subscription.url,
	state: (row) => row.subscription.state,
	waiting: (row) => -(row.health?.oldest_waiting_seconds ?? -1),
	success: (row) => row.health?.last_hour.success ?? 2,
	dead: (row) => -(row.health?.dead ?? -1),
	flight: (row) => -(row.health?.in_flight ?? -1),
};

function compare(a, b) {
	if (typeof a === 'string')
		return a.localeCompare(b);
	return a === b ? 0 : a < b ? -1 : 1;
}

function choose(rows, asked) {
	const text = (asked.get('q') ?? '').toLowerCase();
	const state = asked.get('state') ?? '';
	const by = SORTS[asked.get('sort')] ?? SORTS.trouble;
	const sign = asked.get('down') ? -1 : 1;
	return rows.filter((row) => {
		const { url, event_types: types, id } = row.subscription;
		return `${url} ${types.join(' ')} ${id}`.toLowerCase().includes(text) &&
		    (state === '' || (state === 'trouble' ? isTroubled(row)
		        : row.subscription.state === state));
	}).sort((a, b) => sign * compare(by(a), by(b)));
}

export function stateBadges(subscription, health) {
	return [badge(subscription.state),
		health && health.circuit !== 'closed' ? [' ', badge(health.circuit,
		    `circuit ${health.circuit.replace('_', ' ')}`)] : null,
		health && health.slowed_to !== null ?
		    [' ', badge('slowed', `slowed to ${health.slowed_to}`)] : null];
}

export function waitingText(health) {
	const parts = [[health.due, 'due'], [health.later, 'later'],
		[health.held, 'held']].filter(([n]) => n > 0)
	    .map(([n, word]) => `${count(n, 1000)} ${word}`);
	return parts.length > 0 ? parts.join(' · ') : 'none';
}

const COLUMNS = [
	{ name: 'Endpoint', class: 'wide', sort: 'url', cell: ({ subscription: s }) => [
		link(s.url, to(['subscriptions', s.id]), { class: 'url' }),
		h('div', { class: 'hint' }, s.event_types.join(', '))] },
	{ name: 'State', sort: 'state', cell: ({ subscription, health }) => [
		stateBadges(subscription, health),
		subscription.state_reason ?
		    h('div', { class: 'hint' }, subscription.state_reason) : null] },
	{ name: 'In flight', sort: 'flight', class: 'tight',
		cell: ({ subscription, health }) => health ?
		    `${count(health.in_flight)} of ${count(health.in_flight_limit)}`
		    : `limit ${count(subscription.max_in_flight)}` },
	{ name: 'Assets waiting', sort: 'waiting', cell: ({ health }) => health ? [
		waitingText(health), health.oldest_waiting_seconds !== null ?
		    h('div', { class: 'hint' },
		        `oldest event ${seconds(health.oldest_waiting_seconds)}`) : null]
	    : '–' },
	{ name: 'Success, last hour', sort: 'success', class: 'tight',
		cell: ({ health }) => health ? [percent(health.last_hour.success),
		    h('div', { class: 'hint' }, `${count(health.last_hour.delivered)} delivered`)]
		    : '–' },
	{ name: 'Dead letters', sort: 'dead', class: 'tight',
		cell: ({ subscription, health }) => !health ? '–' : health.dead > 0 ?
		    link(count(health.dead, 1000), to(['dead'],
		        { subscription: subscription.id })) : '0' },
	{ name: 'Last error', class: 'long', cell: ({ health }) => health?.last_error ? [
		health.last_error, h('div', { class: 'hint' }, time(health.last_error_at))]
	    : 'none' },
];

function filters(asked) {
	const change = (event) => {
		const form = new FormData(event.currentTarget);
		filter(['subscriptions'], { ...Object.fromEntries(asked),
			...Object.fromEntries(form) }, { replace: event.type === 'input' });
	};
	return h('form', { class: 'filters', role: 'search', oninput: change,
		onsubmit: (event) => event.preventDefault() },
	field('q', 'URL, type or id contains', input(asked.get('q') ?? '',
	    { type: 'search' })),
	field('state', 'State', select(asked.get('state') ?? '', [['', 'all'],
		['trouble', 'with trouble'], ['active', 'active'], ['paused', 'paused'],
		['disabled', 'disabled']])));
}

function sorting(asked) {
	const by = asked.get('sort') ?? 'trouble';
	const down = Boolean(asked.get('down'));
	return { by, down, href: (name) => to(['subscriptions'], {
		...Object.fromEntries(asked), sort: name,
		down: name === by && !down ? '1' : '' }) };
}

function view(asked, { all, more }, health) {
	const rows = all.map((subscription) =>
	    ({ subscription, health: health.get(subscription.id) }));
	const chosen = choose(rows, asked);
	return [
		heading('Subscriptions', isAdmin() ? link('New subscription',
		    to(['subscriptions', 'new']), { class: 'button primary' }) : null),
		all.length === 0 ? null : filters(asked),
		all.length === 0 ? empty('No subscription yet',
		    'Register the endpoint that shall receive events.') :
		    chosen.length === 0 ? empty('None fits these filters') :
		        h('div', { class: 'panel table-wrap' }, table('Subscriptions',
		            COLUMNS, chosen, { key: (row) => row.subscription.id,
		                sorting: sorting(asked) })),
		h('p', { class: 'hint' }, more ?
		    `The first ${count(all.length)}; there are more. ` :
		    `${count(chosen.length)} of ${count(all.length)}. `,
		all.length > health.size ? `Health is shown for the ${count(health.size)}
			with the most trouble.` : null),
	];
}

export async function open(place) {
	let list = null;
	let listed = 0;

	if (document.querySelector('#view .filters') === null)
		place.paint(heading('Subscriptions'), loading());
	place.live(5000, async (signal) => {
		if (Date.now() - listed > LIST_EVERY) {
			list = await listAll(signal);
			listed = Date.now();
		}
		const health = await healthById(signal);
		place.paint(view(place.query, list, health));
	});
}
