/* subscription: one endpoint: how it is, what holds it up, how it is set. */

import { h } from './dom.js';
import { get, path, query } from './api.js';
import { to } from './router.js';
import { isAdmin } from './session.js';
import { ago, count, distance, milliseconds, percent, plural, seconds, time } from './format.js';
import { badge, crumbs, facts, heading, link, loading, section, table } from './ui.js';
import { stateBadges, waitingText } from './subscriptions.js';
import { actions } from './subscription_actions.js';
import { historyCharts } from './history.js';
import { jobTable } from './replay.js';

/* Why what waits does so. */
const WHY = {
	retry: 'Some failed and are tried again later.',
	limit: 'As many requests are in flight as it may have.',
	rate: 'It is sent as many a second as it may be.',
	circuit: 'It failed so often in a row that only a probe is sent now and then.',
	slowed: 'It said that it is overloaded, and is left alone for a while.',
	held: 'A dead letter holds each of its lanes, until a person decides.',
	paused: 'It is paused: what comes waits until it is resumed.',
	disabled: 'It is disabled: what is left waits until it is enabled.',
};

function health(s, now) {
	if (!now)
		return section('Now', h('p', { class: 'soft' },
		    'It is not among the hundred subscriptions with the most trouble.'));
	const why = WHY[s.state] ?? WHY[now.why];
	return section('Now', why ? h('p', { class: 'story' }, why,
	    now.until ? [' It goes on ', distance(now.until), ', at ', time(now.until), '.'] :
	        null) : null,
	facts(
	    ['Circuit', [badge(now.circuit), now.failures > 0 ?
	        ` ${plural(now.failures, 'failure', 'failures')} in a row` : null,
	    now.probe_at ? [', probe ', time(now.probe_at)] : null]],
	    ['In flight', `${count(now.in_flight)} of ${count(now.in_flight_limit)}`],
	    ['Assets waiting', waitingText(now)],
	    ['Oldest event', now.oldest_waiting_seconds === null ? 'none waits' :
	        `${seconds(now.oldest_waiting_seconds)} old`],
	    ['Success, last hour', `${percent(now.last_hour.success)} ` +
	        `(${count(now.last_hour.delivered)} delivered, ` +
	        `${count(now.last_hour.failed)} failed)`],
	    ['Dead letters', now.dead > 0 ? link(count(now.dead, 1000),
	        to(['dead'], { subscription: s.id })) : 'none'],
	    ['Last error', now.last_error ? [now.last_error, ' · ', ago(now.last_error_at)] :
	        'none']));
}

function limits(s) {
	return [
		['Ordering', s.ordering === 'asset' ? 'per asset' : 'none'],
		['When one is dead', s.on_dead === 'hold' ? 'hold its lane' : 'go on'],
		['Attempts', count(s.max_attempts)],
		['In flight, at most', count(s.max_in_flight)],
		['Rate', s.rate_per_second === null ? 'no limit' :
		    `${s.rate_per_second} a second`],
		['Circuit opens after', s.circuit_after === 0 ? 'never' :
		    plural(s.circuit_after, 'failure', 'failures')],
		['Waits', `${milliseconds(s.retry_base_ms)} to ${milliseconds(s.retry_cap_ms)}`],
		['Time for one', milliseconds(s.timeout_ms)],
	];
}

function settings(s) {
	const headers = [...Object.entries(s.headers).map((pair) => pair.join(': ')),
		...s.secret_headers.map((name) => `${name}: (secret)`)];
	return section('Settings', facts(
	    ['Id', s.id], ['Event types', s.event_types.join(', ')],
	    ['Filter', s.filter === null ? 'none' : h('code', null, s.filter)], ...limits(s),
	    ['Signatures', ['v1', s.ed25519_signature ? 'v1a (Ed25519)' : null,
	        s.older_signature ? 'older scheme' : null].filter(Boolean).join(', ')],
	    ['Headers', headers.length === 0 ? 'none' :
	        headers.map((text) => h('div', null, h('code', null, text)))],
	    ['Own CA', s.tls_ca ? 'yes' : 'no'],
	    ['Client certificate', s.tls_certificate ? 'yes' : 'no'],
	    ['Made', time(s.created_at)], ['Changed', time(s.updated_at)]));
}

/* The heads that others wait behind: what is tried again, and what holds. */
function blocked(s, heads, isAll) {
	return section('What others wait behind', heads.length === 0 ?
	    h('p', { class: 'soft' }, isAll ? 'No lane is blocked by a delivery that failed.' :
	        'None of its latest deliveries failed and blocks a lane; earlier ones were ' +
	        'not looked at.') :
	    table('Deliveries that block their lanes', [
	        { name: 'Asset', class: 'long', cell: (d) => d.asset === null ? '–' :
	            link(d.asset, to(['assets', d.asset])) },
	        { name: 'Blocked by', class: 'wide', cell: (d) => link(d.event_id,
	            to(['subscriptions', s.id, 'deliveries', d.id])) },
	        { name: 'It is', cell: (d) => badge(d.state) },
	        { name: 'Attempts', class: 'num', cell: (d) => count(d.attempts) },
	        { name: 'Last error', class: 'long', cell: (d) => d.last_error ??
	            (d.status ? `HTTP status ${d.status}` : '–') },
	    ], heads, { key: (d) => d.id }));
}

async function load(id, signal) {
	const where = path`/v1/subscriptions/${id}`;
	const list = (state) => get(
	    `${where}/deliveries${query({ state, limit: 20 })}`, signal);
	const s = await get(where, signal);
	const [state, retrying, dead, { replays }] = await Promise.all([
		get('/v1/state?limit=100', signal), list('retrying'),
		s.on_dead === 'hold' ? list('dead') : { deliveries: [] },
		get(`${where}/replays`, signal)]);
	return { s, replays, now: state.endpoints.find((each) =>
	    each.subscription_id === id),
	heads: [...retrying.deliveries, ...dead.deliveries],
	isAll: retrying.next_after === null };
}

export async function open(place) {
	const { id } = place.params;
	const charts = historyCharts(place, ['subscriptions', id], { subscription: id });

	place.paint(heading('Subscription'), loading());
	const polling = place.live(5000, async (signal) => {
		const { s, now, heads, isAll, replays } = await load(id, signal);
		place.title(s.url);
		place.paint(
		    crumbs(['Subscriptions', to(['subscriptions'])], [s.url]),
		    heading(h('span', { class: 'url' }, s.url),
		        isAdmin() ? actions(s, now, () => polling.again()) : null),
		    h('p', { class: 'line' }, stateBadges(s, now),
		        s.state_reason ? h('span', { class: 'soft' }, s.state_reason) : null,
		        link('Its deliveries', to(['deliveries'], { subscription: id })),
		        link('Its dead letters', to(['dead'], { subscription: id }))),
		    health(s, now), blocked(s, heads, isAll), charts.node,
		    replays.length > 0 ? section('Replays', jobTable(replays)) : null,
		    settings(s));
	});
	charts.start();
}
