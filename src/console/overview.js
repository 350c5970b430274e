/* overview: is it going well, and if not, where. */

import { h } from './dom.js';
import { get, query } from './api.js';
import { to } from './router.js';
import { isAdmin, isOperator } from './session.js';
import { count, milliseconds, number, percent, seconds, time } from './format.js';
import { badge, empty, heading, link, loading, section, table } from './ui.js';
import { stateBadges, waitingText } from './subscriptions.js';
import { historyCharts } from './history.js';
import { tenantPicker } from './tenants.js';

const STOP = 10000;

/* A number with its name; `href` leads to what it counts. */
function tile(name, value, more, { tone, href, title } = {}) {
	return h(href ? 'a' : 'div', { class: `tile ${tone ?? ''}`, href, title },
	    h('span', { class: 'name' }, name), h('span', { class: 'value' }, value),
	    h('span', { class: 'more' }, more));
}

function percentiles(name, ms, title) {
	return tile(name, ms === null ? '–' : milliseconds(ms.p50), ms === null ?
	    'none in the last minute' :
	    `p95 ${milliseconds(ms.p95)} · p99 ${milliseconds(ms.p99)}`, { title });
}

function tiles(state) {
	const { recent } = state;
	const own = !isOperator();
	return h('div', { class: 'tiles' },
	    tile('Delivered', [number(recent.per_second), h('small', null, ' /s')],
	        `${count(recent.delivered)} in the last minute`),
	    tile('Success rate', percent(recent.success), recent.failed > 0 ?
	        `${count(recent.failed)} attempts failed` : 'no attempt failed',
	    { tone: recent.success !== null && recent.success < 0.9 ? 'warn' : '' }),
	    percentiles('Attempt, p50', recent.attempt_ms, 'How long one request took'),
	    percentiles('Delivery, p50', recent.delivery_ms,
	        'From acceptance to delivery, replays left out'),
	    tile('Backlog', count(state.waiting, STOP), `assets: ${waitingText(state)}`,
	        { href: own ? to(['deliveries'], { state: 'pending' }) : undefined }),
	    tile('Oldest waiting', seconds(state.oldest_waiting_seconds),
	        state.oldest_accepted_at ? ['since ', time(state.oldest_accepted_at)] :
	            'nothing waits',
	        { tone: state.oldest_waiting_seconds > 300 ? 'warn' : '' }),
	    tile('In flight', count(state.in_flight, STOP), 'requests under way',
	        { href: own ? to(['deliveries'], { state: 'delivering' }) : undefined }),
	    tile('Dead letters', count(state.dead, STOP), state.dead > 0 ?
	        'wait for a person' : 'none', { tone: state.dead > 0 ? 'bad' : '',
	        href: own ? to(['dead']) : undefined }));
}

const COLUMNS = [
	{ name: 'Endpoint', class: 'wide', cell: (e) => [isOperator() ?
		h('span', { class: 'url' }, e.url) :
		link(e.url, to(['subscriptions', e.subscription_id]), { class: 'url' }),
	isOperator() ? h('div', { class: 'hint' }, e.tenant) : null] },
	{ name: 'State', cell: (e) => stateBadges(e, e) },
	{ name: 'Why it waits', cell: (e) => e.why === null ? '–' : [badge(e.why),
		e.until ? h('div', { class: 'hint' }, 'until ', time(e.until)) : null] },
	{ name: 'In flight', class: 'tight', cell: (e) =>
		`${count(e.in_flight)} of ${count(e.in_flight_limit)}` },
	{ name: 'Assets waiting', cell: (e) => [waitingText(e),
		e.oldest_waiting_seconds === null ? null : h('div', { class: 'hint' },
		    `oldest event ${seconds(e.oldest_waiting_seconds)}`)] },
	{ name: 'Success, last hour', class: 'tight', cell: (e) =>
		percent(e.last_hour.success) },
	{ name: 'Dead', class: 'tight', cell: (e) => count(e.dead, 1000) },
	{ name: 'Last error', class: 'long', cell: (e) => e.last_error === null ? 'none' :
		[e.last_error,
		h('div', { class: 'hint' }, time(e.last_error_at))] },
];

function endpoints(state) {
	if (state.endpoints.length === 0)
		return empty('No subscription yet', isAdmin() ?
		    link('Register an endpoint', to(['subscriptions', 'new'])) : null);
	return section('Endpoints, most trouble first',
	    h('div', { class: 'table-wrap' }, table('Endpoints, most trouble first', COLUMNS,
	        state.endpoints, { key: (e) => e.subscription_id })),
	    h('p', { class: 'hint' }, state.more ? 'These are the first ten. ' : null,
	        isOperator() ? 'To open one takes a key of its tenant, as admin or viewer.' :
	            link('All subscriptions', to(['subscriptions']))));
}

export async function open(place) {
	const tenant = isOperator() ? place.query.get('tenant') ?? '' : '';
	const charts = historyCharts(place, [''], { tenant });
	const picker = isOperator() ? await tenantPicker(place, [''], tenant) : () => null;

	place.paint(heading('Overview'), loading('Waiting for the server'));
	place.live(3000, async (signal) => {
		const state = await get(`/v1/state${query({ limit: 10, tenant })}`, signal);
		place.paint(heading('Overview'),
		    picker(),
		    tiles(state), charts.node, endpoints(state),
		    h('p', { class: 'hint' }, 'As of ', time(state.at),
		        ' by the database’s clock. Rates are of the last minute or two.'));
	});
	charts.start();
}
