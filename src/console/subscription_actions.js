/* subscription_actions: what can be done to a subscription, each asked for with
 * its consequence in words. */

import { h } from './dom.js';
import { call, path } from './api.js';
import { go, to } from './router.js';
import { ask } from './dialog.js';
import { plural, time } from './format.js';
import { copier, field, input, link } from './ui.js';
import { attempt } from './attempt.js';

function move(subscription, verb, told) {
	return async () => {
		await call('POST', `${path`/v1/subscriptions/${subscription.id}`}/${verb}`);
		return told;
	};
}

function pause(s, health) {
	const busy = health && health.in_flight > 0 ?
	    `${plural(health.in_flight, 'request', 'requests')} in flight may finish.` :
	    'Nothing is in flight.';
	return ask({ title: 'Pause this subscription?', action: 'Pause',
		lines: [h('code', null, s.url), 'Nothing more is sent until it is resumed. ' +
		    'It goes on taking events, which wait in order.', busy],
		run: move(s, 'pause', 'Paused: nothing more is sent') });
}

function resume(s) {
	return ask({ title: 'Resume this subscription?', action: 'Resume',
		lines: [h('code', null, s.url), 'Sending goes on where it was, in order, ' +
		    'at once. If its circuit is open, one request tries it now.'],
		run: move(s, 'resume', 'Resumed: it is being sent to') });
}

function disable(s) {
	return ask({ title: 'Disable this subscription?', action: 'Disable', danger: true,
		lines: [h('code', null, s.url), 'Nothing more is sent, and it takes no new ' +
		    'events: those that come meanwhile are not for it. What waits stays.'],
		run: move(s, 'disable', 'Disabled: it is sent nothing and takes no events') });
}

function enable(s) {
	return ask({ title: 'Enable this subscription?', action: 'Enable',
		lines: [h('code', null, s.url), 'It takes events again from now on, and what ' +
		    'waits is sent. What came while it was disabled can be replayed.'],
		run: move(s, 'enable', 'Enabled: it takes events and is sent what waits') });
}

function remove(s) {
	return ask({ title: 'Delete this subscription?', action: 'Delete for good',
		danger: true,
		lines: [h('code', null, s.url), 'All that waits for it is cancelled, its ' +
		    'secrets are gone, and its log is no longer shown. It cannot be undone.'],
		run: async () => {
			await call('DELETE', path`/v1/subscriptions/${s.id}`);
			return 'Deleted, with all that waited for it';
		} }).then((done) => {
		if (done)
			go(to(['subscriptions']));
		return false;
	});
}

/* What is shown once stays until it is closed. */
export function shownOnce(name, value, ...more) {
	return h('div', { class: 'panel notice ok' },
	    h('p', { class: 'quiet-title' }, `The ${name}, shown this once`),
	    h('div', { class: 'secret', tabindex: '0' }, value),
	    copier(value, name), ...more);
}

function rotate(s, isKey) {
	const [what, member, verb] = isKey ?
	    ['signing key', 'signing_key', 'rotate-signing-key'] :
	    ['secret', 'secret', 'rotate-secret'];
	return ask({ title: `Rotate the ${what}?`, action: 'Rotate',
		lines: [h('code', null, s.url), `Requests are signed with a new ${what} at once, ` +
		    'and with the old ones too until the overlap is over. A receiver that does ' +
		    'not know the new one by then refuses what it is sent.'],
		fields: [field('overlap_seconds', 'Overlap in hours', input('24', { type: 'number',
			min: '0', max: '720', required: true }),
		{ hint: '0 to 720; with 0 the old ones are no longer used at once' })],
		run: async (form) => {
			const { body } = await call('POST',
			    `${path`/v1/subscriptions/${s.id}`}/${verb}`, { body: {
			        overlap_seconds: Math.round(Number(form.get('overlap_seconds')) * 3600) } });
			return shownOnce(what, body[member], h('p', null, body.old_expires_at ?
			    ['The old ones sign until ', time(body.old_expires_at), '.'] :
			    'The old ones are no longer used.'));
		} });
}

/* Milliseconds, besides the request's own time: a dispatcher takes it first. */
const TEST_MORE = 30000;

function sendTest(s) {
	return ask({ title: 'Send a test?', action: 'Send it',
		lines: [h('code', null, s.url), 'One signed request goes to this endpoint now, ' +
		    'with a test payload, beside what waits. It changes no delivery.'],
		run: async () => {
			const { body } = await call('POST',
			    `${path`/v1/subscriptions/${s.id}`}/test`,
			    { wait: s.timeout_ms + TEST_MORE });
			return testResult(body);
		} });
}

function testResult(tried) {
	const isTaken = tried.status >= 200 && tried.status < 300;
	return h('div', { class: `panel notice ${isTaken ? 'ok' : 'bad'}` },
	    h('p', { class: 'quiet-title' }, isTaken ? 'It was taken' : 'It was not taken'),
	    attempt(tried));
}

/* The buttons that fit its state; `after` is called when something was done. */
export function actions(s, health, after) {
	const button = (name, run, tone) => h('button', { type: 'button', class: tone,
		onclick: async () => {
			if (await run())
				after();
		} }, name);
	return [
		s.state === 'active' ? button('Pause', () => pause(s, health)) : null,
		s.state === 'paused' ? button('Resume', () => resume(s), 'primary') : null,
		s.state === 'disabled' ? button('Enable', () => enable(s), 'primary') : null,
		button('Send test', () => sendTest(s)),
		link('Edit', to(['subscriptions', s.id, 'edit']), { class: 'button' }),
		button('Rotate secret', () => rotate(s, false)),
		s.ed25519_signature ? button('Rotate signing key', () => rotate(s, true)) : null,
		s.state !== 'disabled' ? button('Disable', () => disable(s)) : null,
		button('Delete', () => remove(s), 'danger'),
	];
}
