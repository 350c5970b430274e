/* router: which view an address shows.
 *
 * All of a view, its filters included, is in the fragment, so that a link brings
 * another person to the same sight and the back button works: nothing of it goes
 * to the server's log. */

import { query as queryOf } from './api.js';

/* Pattern, the module that shows it, what it is called. */
const ROUTES = [
	['/', './overview.js', 'Overview'],
	['/subscriptions', './subscriptions.js', 'Subscriptions'],
	['/subscriptions/new', './subscription_form.js', 'New subscription'],
	['/subscriptions/:id', './subscription.js', 'Subscription'],
	['/subscriptions/:id/edit', './subscription_form.js', 'Edit subscription'],
	['/subscriptions/:id/replays/:job', './replay.js', 'Replay'],
	['/subscriptions/:id/deliveries/:delivery', './delivery.js', 'Delivery'],
	['/deliveries', './deliveries.js', 'Deliveries'],
	['/dead', './dead.js', 'Dead letters'],
	['/assets', './assets.js', 'Assets'],
	['/assets/:asset', './assets.js', 'Asset'],
	['/events', './events.js', 'Events'],
	['/events/:event', './event.js', 'Event'],
	['/submit', './submit.js', 'Send an event'],
	['/tenants', './tenants.js', 'Tenants'],
	['/keys', './keys.js', 'Keys'],
	['/audit', './audit.js', 'Audit'],
];

function decode(text) {
	try {
		return decodeURIComponent(text);
	} catch {
		return text;
	}
}

function match(pattern, path) {
	const want = pattern.split('/');
	const have = path.split('/');
	const params = {};

	if (want.length !== have.length)
		return null;
	for (let i = 0; i < want.length; i++) {
		if (want[i].startsWith(':') && have[i] !== '')
			params[want[i].slice(1)] = decode(have[i]);
		else if (want[i] !== have[i])
			return null;
	}
	return params;
}

/* { module, name, params, query } of a fragment; module is null if none fits. */
export function find(fragment) {
	const [path, query] = fragment.replace(/^#/, '').split(/\?(.*)/s);
	const where = path === '' ? '/' : path;
	for (const [pattern, module, name] of ROUTES) {
		const params = match(pattern, where);
		if (params !== null)
			return { pattern, module, name, params,
				query: new URLSearchParams(query ?? '') };
	}
	return { pattern: '', module: null, name: 'Not found', params: {},
		query: new URLSearchParams() };
}

/* A link to a place: to(['subscriptions', id], { state: 'dead' }). */
export function to(segments, query = {}) {
	return `#/${segments.map(encodeURIComponent).join('/')}${queryOf(query)}`;
}

export function go(where) {
	location.hash = where;
}

/* Show another filter of the same view; as a step of the history, or in place. */
export function filter(segments, query, { replace = false } = {}) {
	const where = to(segments, query);
	if (where === location.hash)
		return;
	if (replace) {
		history.replaceState(null, '', where);
		dispatchEvent(new HashChangeEvent('hashchange'));
	} else {
		location.hash = where;
	}
}
