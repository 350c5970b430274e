/* replay: a replay in the background, and how far it is. */

import { h } from './dom.js';
import { call, get, path } from './api.js';
import { to } from './router.js';
import { isAdmin } from './session.js';
import { ask } from './dialog.js';
import { count, time } from './format.js';
import { badge, crumbs, facts, heading, link, loading, section, table } from './ui.js';

const WHAT = { dead: 'dead letters', events: 'events' };

export function jobTable(jobs) {
	return h('div', { class: 'table-wrap' }, table('Replays', [
		{ name: 'Replay', cell: (job) => link(`${WHAT[job.what]} #${job.id}`,
		    to(['subscriptions', job.subscription_id, 'replays', job.id])) },
		{ name: 'State', cell: (job) => badge(job.state) },
		{ name: 'Replayed', class: 'num', cell: (job) => count(job.replayed) },
		{ name: 'Looked at', class: 'num', cell: (job) => count(job.examined) },
		{ name: 'Refused', class: 'num', cell: (job) => count(job.refused) },
		{ name: 'Begun', cell: (job) => time(job.created_at) },
	], jobs, { key: (job) => job.id }));
}

function cancel(job, again) {
	return ask({ title: 'Cancel this replay?', action: 'Cancel the replay', danger: true,
		lines: ['No more are replayed. Those that were replayed already are sent.'],
		run: async () => {
			await call('DELETE', path`/v1/subscriptions/${job.subscription_id
			}/replays/${job.id}`);
			return 'Cancelled: no more are replayed';
		} }).then((done) => done && again());
}

function view(job, again) {
	const title = `Replay of ${WHAT[job.what]}`;
	return [
		crumbs(['Subscriptions', to(['subscriptions'])],
		    ['Subscription', to(['subscriptions', job.subscription_id])],
		    [`Replay ${job.id}`]),
		heading(title, job.state === 'running' && isAdmin() ?
		    h('button', { type: 'button', class: 'danger',
		        onclick: () => cancel(job, again) }, 'Cancel it') : null),
		h('p', { class: 'line', role: 'status' }, badge(job.state),
		    `${count(job.replayed)} replayed of ${count(job.examined)} looked at`),
		section('Progress', facts(
		    ['Replayed', count(job.replayed)],
		    ['Looked at', count(job.examined)],
		    ['Refused', job.refused > 0 ? `${count(job.refused)}: the payload was purged` :
		        'none'],
		    ['Since', job.since ? time(job.since) : 'the beginning'],
		    ['Until', time(job.until)],
		    ['Rate, at most', `${count(job.rate_per_second)} a second`],
		    ['Asked for by', job.created_by], ['Begun', time(job.created_at)],
		    ['Finished', job.finished_at ? time(job.finished_at) : 'not yet'])),
		h('p', null, link('Its dead letters', to(['dead'],
		    { subscription: job.subscription_id }))),
	];
}

export async function open(place) {
	const { id, job } = place.params;
	let isRunning = true;

	place.paint(heading('Replay'), loading());
	const polling = place.live(() => isRunning ? 1000 : 30000, async (signal) => {
		const found = await get(path`/v1/subscriptions/${id}/replays/${job}`, signal);
		isRunning = found.state === 'running';
		place.paint(view(found, () => polling.again()));
	});
}
