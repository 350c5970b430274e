/* assets: one asset's lanes: what was delivered, what is in flight, what waits and
 * why, in the order in which it is sent. */

import { h } from './dom.js';
import { get, path } from './api.js';
import { filter, to } from './router.js';
import { isAdmin } from './session.js';
import { ago, count, distance, plural, time } from './format.js';
import { badge, crumbs, empty, field, heading, input, link, section, table } from './ui.js';
import { listAll } from './subscriptions.js';
import { MOST_AT_ONCE, deliveryColumns, page } from './deliveries.js';
import { discard, retry } from './delivery.js';

const SHOWN = 50;
const STOP = 100;

function lookup(asset) {
	const submit = (event) => {
		event.preventDefault();
		const wanted = new FormData(event.currentTarget).get('asset');
		if (wanted !== '')
			filter(['assets', wanted], {});
	};
	return h('form', { class: 'filters', role: 'search', onsubmit: submit },
	    field('asset', 'Asset', input(asset, { required: true })),
	    h('div', { class: 'actions' },
	        h('button', { type: 'submit', class: 'primary' }, 'Look it up')));
}

function deliveryLink(lane, item) {
	return link(item.event_id,
	    to(['subscriptions', lane.subscription_id, 'deliveries', item.id]));
}

function waitTime(until) {
	return until === null ? '' : [', ', distance(until), ' at ', time(until)];
}

/* Why this lane is where it is: the head, and what that means for the others. */
function reason(lane) {
	const head = deliveryLink(lane, lane.head);
	const endpoint = link('this endpoint', to(['subscriptions', lane.subscription_id]));
	switch (lane.why) {
	case 'ready':
		return [head, ' can be sent, and is about to be.'];
	case 'in flight':
		return [head, ' is being sent right now.'];
	case 'retry':
		return [head, ' failed and is tried again', waitTime(lane.until), '.'];
	case 'held':
		return [head, ' ended without success and holds the lane: nothing goes on until ' +
		    'a person retries it or discards it.'];
	case 'paused':
		return ['Paused: nothing is sent to ', endpoint, ' until it is resumed. ', head,
			' is next.'];
	case 'disabled':
		return ['Disabled: nothing is sent to ', endpoint, ' until it is enabled. ', head,
			' is next.'];
	case 'circuit':
		return ['The circuit of ', endpoint, ' is open, since it failed so often in a row: ' +
		    'a probe tries it', waitTime(lane.until), '. ', head, ' is next here.'];
	case 'slowed':
		return [endpoint, ' said that it is overloaded, and is left alone',
			waitTime(lane.until), '. ', head, ' is next.'];
	case 'rate':
		return [endpoint, ' is sent as many a second as it may be. ', head, ' is next.'];
	case 'limit':
		return [endpoint, ' has as many requests in flight as it may have. ', head,
			' is next.'];
	default:
		return [`${lane.why}. `, head, ' is next.'];
	}
}

function consequence(lane) {
	const parts = [];
	if (lane.replays > 0)
		parts.push(plural(lane.replays, 'replay goes', 'replays go', STOP) + ' first.');
	if (lane.behind > 0)
		parts.push(`${plural(lane.behind, 'event waits', 'events wait', STOP)} behind it, ` +
		    'in order.');
	return parts.length > 0 ? ` ${parts.join(' ')}` : ' Nothing waits behind it.';
}

const KNOTS = { delivered: ['✓', 'ok'], dead: ['✕', 'bad'], cancelled: ['–', 'idle'],
	delivering: ['↑', 'busy'], retrying: ['↻', 'warn'], pending: ['○', 'idle'] };

/* What the head is to those behind it. */
const HEADS = { delivering: 'Now', dead: 'Holds the lane' };

function knot(state) {
	const [shape, tone] = KNOTS[state] ?? KNOTS.pending;
	return h('span', { class: `knot badge ${tone}`, 'aria-hidden': 'true' }, shape);
}

function tries(item) {
	if (item.attempts === 0)
		return null;
	return h('span', { class: 'soft' }, plural(item.attempts, 'attempt', 'attempts'),
	    item.last_attempt_at ? [', the last ', ago(item.last_attempt_at)] : null);
}

/* `place` says where it stands: '' is behind us. */
function row(lane, item, place, more) {
	return h('li', { 'data-key': item.id, class: place === '' ? 'is-over' : null },
	    knot(item.state), h('div', { class: item === lane.head ? 'is-head' : null },
	        h('p', { class: 'line' },
	            place !== '' ? h('strong', null, place) : null,
	            deliveryLink(lane, item), badge(item.state),
	            h('span', { class: 'soft' }, item.type),
	            item.replayed ? h('span', { class: 'soft' },
	                `sent again, generation ${item.generation}`) : null,
	            tries(item),
	            item.finished_at ? time(item.finished_at) :
	                h('span', { class: 'soft' }, 'accepted ', time(item.accepted_at))),
	        item.last_error ? h('p', { class: 'small-text' },
	            `Last error: ${item.last_error}`) : null, more));
}

function headActions(lane, again) {
	if (lane.head.state !== 'dead' || !isAdmin())
		return null;
	const head = { ...lane.head, subscription_id: lane.subscription_id };
	return h('div', { class: 'actions' },
	    h('button', { type: 'button', class: 'primary small',
	        onclick: () => retry(head, again) }, 'Retry it'),
	    h('button', { type: 'button', class: 'danger small',
	        onclick: () => discard(head, again) }, 'Discard it'));
}

function laneCard(lane, again) {
	const left = lane.replays + lane.behind - lane.waiting.length;
	return h('section', { class: 'block lane', 'data-key': lane.subscription_id +
	    lane.head.id, 'aria-label': `Lane to ${lane.url}` },
	h('div', { class: 'lane-head' },
	    h('h2', null, 'To ', link(lane.url, to(['subscriptions', lane.subscription_id]),
	        { class: 'url' })), badge(lane.why)),
	h('p', { class: 'story' }, reason(lane), consequence(lane)),
	h('ol', { class: 'timeline' },
	    [...lane.finished].reverse().map((item) => row(lane, item, '')),
	    row(lane, lane.head, HEADS[lane.head.state] ?? 'Next', headActions(lane, again)),
	    lane.waiting.map((item, i) => row(lane, item, `+${i + 1}`)),
	    left > 0 ? h('li', { 'data-key': 'more' }, h('span', { class: 'knot',
	        'aria-hidden': 'true' }, '⋮'), h('span', { class: 'soft' },
	        `and ${count(left, STOP)} more`)) : null));
}

function logOf(asset, log, urls) {
	if (log === null)
		return null;
	return section('Its log, the newest first', log.shown.length === 0 ?
	    h('p', { class: 'soft' }, 'Nothing of this asset was found in the latest of the log.') :
	    h('div', { class: 'table-wrap' }, table('Deliveries of this asset',
	        deliveryColumns(urls).filter((column) => column.name !== 'Asset'), log.shown,
	        { key: (d) => d.id })),
	h('p', null, link('All its deliveries', to(['deliveries'], { asset }))));
}

function view(found, log, urls, again) {
	const { asset, lanes } = found;
	return [
		crumbs(['Assets', to(['assets'])], [asset]),
		heading(['Asset ', h('span', { class: 'url' }, asset)]),
		lookup(asset),
		lanes.length === 0 ? empty('Nothing of this asset waits',
		    'Whatever came of it was delivered or given up; the log tells which.') :
		    [h('p', { class: 'soft' }, `${plural(lanes.length, 'endpoint has', 'endpoints have')
		    }${found.more ? ' more than that, and these' : ''} something of it to come. ` +
		    'In each lane events are sent one after the other, in this order.'),
		    lanes.map((lane) => laneCard(lane, again))],
		logOf(asset, log, urls),
	];
}

/* Assets that something was accepted for lately: where to begin. */
function suggestions(recent) {
	const assets = [...new Set(recent.shown.map((d) => d.asset)
	    .filter((asset) => asset !== null))].slice(0, 20);
	return assets.length === 0 ? null : section('Lately seen', h('p', { class: 'line' },
	    assets.map((asset) => link(asset, to(['assets', asset])))));
}

async function openSearch(place, ids) {
	const recent = ids.length === 0 ? { shown: [] } :
	    await page(ids, {}, '', place.signal, 100);
	place.paint(heading('Assets'),
	    h('p', { class: 'soft' }, 'Events of one asset reach each endpoint in order, so one ' +
	        'that fails holds up those behind it. Look an asset up to see what was ' +
	        'delivered, what is in flight, and what waits for what.'),
	    lookup(''), suggestions(recent));
}

export async function open(place) {
	const { asset } = place.params;
	const { all } = await listAll(place.signal);
	const ids = all.length <= MOST_AT_ONCE ? all.map((s) => s.id) : [];
	const urls = new Map(all.map((s) => [s.id, s.url]));

	if (asset === undefined) {
		await openSearch(place, ids);
		return;
	}
	place.title(`Asset ${asset}`);
	const polling = place.live(2500, async (signal) => {
		const [found, log] = await Promise.all([
			get(`${path`/v1/assets/${asset}`}?limit=${SHOWN}`, signal),
			ids.length === 0 ? null : page(ids, { asset }, '', signal, 20)]);
		place.paint(view(found, log, urls, () => polling.again()));
	});
}
