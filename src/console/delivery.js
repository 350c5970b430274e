/* delivery: one event for one subscription: what was tried, when, and what came
 * back. */

import { h } from './dom.js';
import { call, get, path } from './api.js';
import { to } from './router.js';
import { isAdmin } from './session.js';
import { ask } from './dialog.js';
import { count, distance, plural, time } from './format.js';
import { badge, crumbs, facts, heading, link, loading, section } from './ui.js';
import { attempt } from './attempt.js';

export const DONE = new Set(['delivered', 'dead', 'cancelled']);

const WHY = {
	ready: 'It can be sent, and is about to be.',
	'in flight': 'It is being sent now.',
	retry: 'The last attempt failed; it is tried again',
	limit: 'Its endpoint has as many requests in flight as it may have.',
	rate: 'Its endpoint is sent as many a second as it may be.',
	circuit: 'Its endpoint failed so often in a row that only a probe is sent now and then.',
	slowed: 'Its endpoint said that it is overloaded, and is left alone',
	held: 'A dead letter holds its lane, until a person retries or discards that.',
	paused: 'Its subscription is paused: it waits until that is resumed.',
	disabled: 'Its subscription is disabled: it waits until that is enabled.',
};

export function retry(delivery, after) {
	return ask({ title: 'Send this again?', action: 'Retry',
		lines: [h('code', null, delivery.event_id), 'It is sent anew, as a generation of ' +
		    'its own with all its attempts, in its event’s own place: before all of its ' +
		    'asset that has not been sent. The receiver gets the same id and the same ' +
		    'bytes.'],
		run: async () => {
			const { body } = await call('POST', path`/v1/subscriptions/${
				delivery.subscription_id}/deliveries/${delivery.id}/retry`);
			return `Generation ${body.generation} is ${body.state}` + (body.held_by ?
				`, behind ${body.held_by}` : '');
		} }).then((done) => done && after());
}

export function discard(delivery, after) {
	return ask({ title: 'Give this up?', action: 'Discard for good', danger: true,
		lines: [h('code', null, delivery.event_id), 'The receiver never gets it from here. ' +
		    'If it holds its lane, what waits behind it is sent next.'],
		run: async () => {
			await call('POST', path`/v1/subscriptions/${delivery.subscription_id
			}/deliveries/${delivery.id}/discard`);
			return 'Discarded: what waited behind it goes on';
		} }).then((done) => done && after());
}

/* What it waits for, in a sentence. */
function story(d) {
	if (d.behind !== null)
		return ['It waits behind an earlier event of its asset: ',
			link(`delivery ${d.behind}`,
			    to(['subscriptions', d.subscription_id, 'deliveries', d.behind])), '.'];
	if (d.why !== null)
		return [WHY[d.why] ?? d.why, d.until !== null ?
			[' ', distance(d.until), ', at ', time(d.until), '.'] : null];
	if (d.state === 'dead')
		return d.payload_purged ?
		    'Its payload was purged, so it cannot be sent again: post the event anew, ' +
		    'or discard this.' :
		    'It ended without success, and waits for a person: retry it, or discard it.';
	return null;
}

function history(d) {
	const longest = Math.max(...d.history.map((tried) => tried.duration_us ?? 0));
	let generation = 0;
	const steps = d.history.flatMap((tried) => {
		const parts = [];
		if (tried.generation !== generation) {
			generation = tried.generation;
			parts.push(h('li', { class: 'generation', 'data-key': `g${generation}` },
			    h('span', { class: 'knot', 'aria-hidden': 'true' }, '◆'),
			    generation === 1 ? 'As it was accepted' :
			        `Generation ${generation}: sent again`));
		}
		const good = tried.status >= 200 && tried.status < 300;
		parts.push(h('li', { 'data-key': `${tried.generation}.${tried.attempt}` },
		    h('span', { class: `knot badge ${good ? 'ok' : 'bad'}`,
		        'aria-hidden': 'true' }, good ? '✓' : '✕'),
		    attempt(tried, `Attempt ${tried.attempt}`, longest)));
		return parts;
	});
	return section(plural(d.history.length, 'attempt', 'attempts'),
	    h('ol', { class: 'timeline' }, steps,
	        DONE.has(d.state) ? h('li', { 'data-key': 'end' },
	            h('span', { class: 'knot', 'aria-hidden': 'true' }, '◼'),
	            h('p', { class: 'line' }, badge(d.state), time(d.finished_at))) :
	            h('li', { 'data-key': 'next' },
	                h('span', { class: 'knot', 'aria-hidden': 'true' }, '…'),
	                h('p', { class: 'line' }, badge(d.state), story(d)))));
}

function buttons(d, again) {
	if (d.state !== 'dead' || !isAdmin())
		return null;
	return [
		h('button', { type: 'button', class: 'primary', disabled: d.payload_purged,
			onclick: () => retry(d, again) }, 'Retry'),
		h('button', { type: 'button', class: 'danger',
			onclick: () => discard(d, again) }, 'Discard'),
	];
}

function view(d, again) {
	return [
		crumbs(['Subscriptions', to(['subscriptions'])],
		    ['Subscription', to(['subscriptions', d.subscription_id])],
		    ['Deliveries', to(['deliveries'], { subscription: d.subscription_id })],
		    [d.id]),
		heading(['Delivery of ', h('span', { class: 'url' }, d.event_id)],
		    buttons(d, again)),
		h('p', { class: 'line story', role: 'status' }, badge(d.state), story(d)),
		section('What it is', facts(
		    ['Event', link(d.event_id, to(['events', d.event_id]))],
		    ['Type', d.type],
		    ['Asset', d.asset === null ? 'none: it has no order' :
		        link(d.asset, to(['assets', d.asset]))],
		    ['Accepted', time(d.accepted_at)], ['Finished', time(d.finished_at)],
		    ['Generation', d.replayed ? `${count(d.generation)}: it was sent again` : '1'],
		    ['Attempts in it', count(d.attempts)],
		    ['Payload', d.payload_purged ? 'purged' : 'kept'])),
		history(d),
	];
}

export async function open(place) {
	const { id, delivery } = place.params;
	let isDone = false;

	place.paint(heading('Delivery'), loading());
	const polling = place.live(() => isDone ? 10000 : 2000, async (signal) => {
		const found = await get(path`/v1/subscriptions/${id}/deliveries/${delivery}`,
		    signal);
		isDone = DONE.has(found.state);
		place.title(`Delivery of ${found.event_id}`);
		place.paint(view(found, () => polling.again()));
	});
}
