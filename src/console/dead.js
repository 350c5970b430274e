/* dead: what ended without success, by why and where; and sending it again. */

import { h } from './dom.js';
import { call, get, path, query } from './api.js';
import { go, to } from './router.js';
import { isAdmin } from './session.js';
import { ask } from './dialog.js';
import { ago, count, fromLocal, plural, time } from './format.js';
import { empty, field, heading, input, link, loading, section, table } from './ui.js';
import { page } from './deliveries.js';
import { discard, retry } from './delivery.js';

const PAGE = 50;
const PAGES = 10;

function groupTable(groups, asked) {
	return h('div', { class: 'table-wrap' }, table('Dead letters by reason and endpoint', [
		{ name: 'Reason', class: 'wide', cell: (g) => link(g.reason, to(['dead'],
		    { subscription: g.subscription_id, reason: g.reason }),
		{ 'aria-current': g.subscription_id === asked.get('subscription') &&
		    g.reason === asked.get('reason') ? 'true' : null }) },
		{ name: 'Endpoint', class: 'wide', cell: (g) => link(g.url,
		    to(['subscriptions', g.subscription_id]), { class: 'url' }) },
		{ name: 'How many', class: 'num', cell: (g) => count(g.count) },
		{ name: 'First', class: 'tight', cell: (g) => ago(g.oldest_died_at) },
		{ name: 'Latest', class: 'tight', cell: (g) => ago(g.newest_died_at) },
	], groups, { key: (g) => `${g.subscription_id} ${g.reason}` }));
}

/* The newest dead letters of a subscription, of one reason if it is given. */
async function listDead(subscription, reason, signal) {
	const found = [];
	let after = '';
	for (let n = 0; n < PAGES && found.length < PAGE; n++) {
		const { shown, next } = await page([subscription], { state: 'dead' }, after,
		    signal);
		found.push(...shown.filter((d) => !reason || d.last_error === reason));
		if (next === null)
			return { found, more: false };
		after = next;
	}
	return { found, more: true };
}

/* Retry some, one after the other; each answer counts. */
async function retryAll(deliveries, say) {
	const refused = [];
	let done = 0;
	for (const d of deliveries) {
		try {
			await call('POST', path`/v1/subscriptions/${d.subscription_id
			}/deliveries/${d.id}/retry`);
			done += 1;
		} catch (error) {
			refused.push(`${d.event_id}: ${error.message}`);
		}
		say(`${count(done + refused.length)} of ${count(deliveries.length)}`);
	}
	return { done, refused };
}

function askRetrySelection(deliveries, after) {
	const progress = h('p', { role: 'status', class: 'hint' });
	return ask({ title: `Retry ${plural(deliveries.length, 'dead letter',
	    'dead letters')}?`, action: 'Retry them',
	lines: ['Each is sent anew in its event’s own place, with the same id and the ' +
	    'same bytes.'], fields: [progress],
	run: async () => {
		const { done, refused } = await retryAll(deliveries, (text) => {
			progress.textContent = text;
		});
		if (refused.length === 0)
			return `${plural(done, 'dead letter is', 'dead letters are')} sent again`;
		return h('div', null, h('p', null, `${count(done)} are sent again. ` +
		    `${count(refused.length)} cannot be:`),
		h('ul', null, refused.map((text) => h('li', null, text))));
	} }).then((isDone) => isDone && after());
}

function askRetrySpan(subscription) {
	const moment = (name, label, hint) => field(name, label, input('',
	    { type: 'datetime-local', step: '1' }), { hint });
	let job = null;
	return ask({ title: 'Retry all dead letters of a time?', action: 'Begin',
		lines: ['All of this subscription that died in that time are sent again in the ' +
		    'background. You can watch it, and cancel it.'],
		fields: [moment('since', 'Since', 'empty: from the first on'),
			moment('until', 'Until', 'empty: until now'),
			field('rate_per_second', 'At most so many a second', input('',
			    { type: 'number', min: '1', max: '10000' }), { hint: 'empty: 100' })],
		run: async (form) => {
			const body = { since: fromLocal(form.get('since')),
				until: fromLocal(form.get('until')),
				rate_per_second: form.get('rate_per_second') };
			for (const name of Object.keys(body))
				if (body[name] === '')
					delete body[name];
			if (body.rate_per_second !== undefined)
				body.rate_per_second = Number(body.rate_per_second);
			job = (await call('POST', path`/v1/subscriptions/${subscription
			}/retry-dead`, { body })).body;
			return 'Begun in the background';
		} }).then((isDone) => {
		if (isDone)
			go(to(['subscriptions', subscription, 'replays', job.id]));
	});
}

/* The chosen group's letters.  `picked` has the ids that are selected. */
function letters(subscription, list, picked, again, repaint) {
	const can = list.found.filter((d) => !d.payload_purged);
	const chosen = can.filter((d) => picked.has(d.id));
	const toggle = (d) => (event) => {
		if (event.target.checked)
			picked.add(d.id);
		else
			picked.delete(d.id);
		repaint();
	};
	const all = (event) => {
		picked.clear();
		if (event.target.checked)
			can.forEach((d) => picked.add(d.id));
		repaint();
	};
	return section('Dead letters',
	    !isAdmin() ? null : h('div', { class: 'actions' },
	        h('label', { class: 'check' }, box('all', chosen.length === can.length &&
	            can.length > 0, all, can.length === 0), 'Select all shown'),
	        h('button', { type: 'button', class: 'primary', disabled: chosen.length === 0,
	            onclick: () => askRetrySelection(chosen, () => {
	                picked.clear();
	                again();
	            }) }, `Retry selected (${count(chosen.length)})`),
	        h('button', { type: 'button', onclick: () => askRetrySpan(subscription) },
	            'Retry all of a time…')),
	    h('div', { class: 'table-wrap' }, table('Dead letters', [
	        isAdmin() ? { name: 'Select', class: 'pick', cell: (d) => box(d.id,
	            picked.has(d.id), toggle(d), d.payload_purged,
	            `Select ${d.event_id}`) } : null,
	        { name: 'Event', class: 'wide', cell: (d) => [link(d.event_id,
	            to(['subscriptions', d.subscription_id, 'deliveries', d.id])),
	        h('div', { class: 'hint' }, d.type)] },
	        { name: 'Asset', class: 'long', cell: (d) => d.asset === null ? '–' :
	            link(d.asset, to(['assets', d.asset])) },
	        { name: 'Why', class: 'long', cell: (d) => d.last_error ?? '–' },
	        { name: 'Attempts', class: 'num', cell: (d) => count(d.attempts) },
	        { name: 'Died', class: 'tight', cell: (d) => time(d.finished_at) },
	        isAdmin() ? { name: 'Do', cell: (d) => rowActions(d, again) } : null,
	    ].filter(Boolean), list.found, { key: (d) => d.id })),
	    list.more ? h('p', { class: 'hint' }, 'These are the newest; there are more.') :
	        null);
}

function box(value, checked, onchange, disabled, label) {
	const made = h('input', { type: 'checkbox', value, disabled, onchange,
		'aria-label': label });
	made.checked = checked;
	return made;
}

function rowActions(d, again) {
	return h('div', { class: 'actions' }, d.payload_purged ?
	    h('span', { class: 'hint' }, 'Cannot be sent again: its payload was purged.') :
	    h('button', { type: 'button', class: 'small', 'aria-label':
	        `Retry ${d.event_id}`, onclick: () => retry(d, again) }, 'Retry'),
	h('button', { type: 'button', class: 'small', 'aria-label':
	    `Discard ${d.event_id}`, onclick: () => discard(d, again) }, 'Discard'));
}

export async function open(place) {
	const asked = place.query;
	const subscription = asked.get('subscription') ?? '';
	const reason = asked.get('reason') ?? '';
	const picked = new Set();
	let seen = null;

	if (document.querySelector('#view .grid') === null)
		place.paint(heading('Dead letters'), loading());
	const repaint = () => {
		const { groups, list, whole } = seen;
		place.paint(heading('Dead letters'),
		    groups.length === 0 ? empty('No dead letters',
		        'All that was accepted is delivered, or is still being tried.') :
		        section('By reason and endpoint', groupTable(groups, asked),
		            whole ? null : h('p', { class: 'hint' },
		                'There are more: the newest were counted.')),
		    subscription !== '' ? h('p', { class: 'line' }, 'Shown: ', reason || 'all reasons',
		        link('Show all', to(['dead']))) : null,
		    list === null || groups.length === 0 ? null :
		        letters(subscription, list, picked, () => polling.again(), repaint));
	};
	const polling = place.live(5000, async (signal) => {
		const [answer, list] = await Promise.all([
			get(`/v1/dead-letters${query({ subscription })}`, signal),
			subscription === '' ? null : listDead(subscription, reason, signal)]);
		seen = { groups: answer.groups, whole: answer.is_complete, list };
		repaint();
	});
}
