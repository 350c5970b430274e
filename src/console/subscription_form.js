/* subscription_form: registering an endpoint, and changing one. */

import { h } from './dom.js';
import { Problem, call, path } from './api.js';
import { go, to } from './router.js';
import { isAdmin } from './session.js';
import { tell } from './dialog.js';
import { crumbs, empty, failed, field, heading, input, link, loading, select,
	submitter, textarea } from './ui.js';
import { shownOnce } from './subscription_actions.js';

const FRESH = { url: '', event_types: ['*'], filter: null, ordering: 'asset', on_dead: 'skip',
	max_attempts: 12, max_in_flight: 100, rate_per_second: null, circuit_after: 20,
	retry_base_ms: 5000, retry_cap_ms: 3600000, timeout_ms: 10000,
	older_signature: false, ed25519_signature: false, headers: {}, secret_headers: [] };

const NUMBERS = [
	['max_attempts', 'Attempts', 'then it is a dead letter'],
	['timeout_ms', 'Time for one attempt, ms', '100 to 60000'],
	['retry_base_ms', 'First wait, ms', 'it doubles with each attempt'],
	['retry_cap_ms', 'Longest wait, ms', 'at most a day'],
	['max_in_flight', 'In flight, at most', '1 to 10000'],
	['circuit_after', 'Circuit opens after', 'so many failures in a row; 0: never'],
];

function yes(value) {
	return select(String(value), [['false', 'no'], ['true', 'yes']]);
}

function linesOf(headers) {
	return Object.entries(headers).map(([name, value]) => `${name}: ${value}`).join('\n');
}

function headersOf(text) {
	return Object.fromEntries(text.split('\n').filter((line) => line.trim() !== '')
	    .map((line) => {
	        const colon = line.indexOf(':');
	        return colon < 0 ? [line.trim(), ''] :
	            [line.slice(0, colon).trim(), line.slice(colon + 1).trim()];
	    }));
}

/* A number as a number; what is none goes as it was typed, and is refused. */
function numberOf(text) {
	const n = Number(text);
	return text.trim() !== '' && !Number.isNaN(n) ? n : text;
}

function read(form) {
	const fields = {
		url: form.get('url').trim(),
		event_types: form.get('event_types').split(/[\s,]+/).filter((type) => type !== ''),
		filter: form.get('filter').trim() === '' ? null : form.get('filter').trim(),
		ordering: form.get('ordering'),
		on_dead: form.get('on_dead'),
		rate_per_second: form.get('rate_per_second').trim() === '' ? null :
		    numberOf(form.get('rate_per_second')),
		older_signature: form.get('older_signature') === 'true',
		ed25519_signature: form.get('ed25519_signature') === 'true',
		headers: headersOf(form.get('headers')),
	};
	for (const [name] of NUMBERS)
		fields[name] = numberOf(form.get(name));
	if (form.get('secret_headers').trim() !== '')
		fields.secret_headers = headersOf(form.get('secret_headers'));
	return fields;
}

/* Only what differs from `old`, so that a change says what it changes. */
function changed(fields, old) {
	return Object.fromEntries(Object.entries(fields).filter(([name, value]) =>
	    name === 'secret_headers' ||
	    JSON.stringify(value) !== JSON.stringify(old[name])));
}

function at(error, name) {
	return error instanceof Problem && error.pointer === `/${name}` ||
	    error instanceof Problem && error.pointer.startsWith(`/${name}/`) ?
	    error.message : null;
}

function basics(s, error) {
	return [
		field('url', 'URL', input(s.url, { type: 'url', required: true }),
		    { error: at(error, 'url'), hint: 'https, where requests go' }),
		field('event_types', 'Event types', input(s.event_types.join(', ')),
		    { error: at(error, 'event_types'), hint: 'such as order.paid, pump.*, or * ' +
		        'for all; with commas between them' }),
		field('filter', 'Filter', input(s.filter ?? ''), { error: at(error, 'filter'),
		    hint: 'only events for which this is true, such as $.data.pressure > 10; ' +
		        'empty: all' }),
		h('div', { class: 'pair' },
		    field('ordering', 'Order', select(s.ordering, [['asset', 'per asset'],
		        ['none', 'none']]), { error: at(error, 'ordering') }),
		    field('on_dead', 'When an event is dead', select(s.on_dead,
		        [['skip', 'go on with the next'], ['hold', 'hold its asset']]),
		    { error: at(error, 'on_dead') })),
	];
}

function limits(s, error) {
	return h('div', { class: 'pair' },
	    NUMBERS.map(([name, label, hint]) => field(name, label,
	        input(s[name], { inputmode: 'numeric' }), { error: at(error, name), hint })),
	    field('rate_per_second', 'Most a second', input(s.rate_per_second ?? '',
	        { inputmode: 'decimal' }), { error: at(error, 'rate_per_second'),
	        hint: 'empty: no limit' }));
}

function signing(s, error) {
	return [
		h('div', { class: 'pair' },
		    field('ed25519_signature', 'Ed25519 signature too', yes(s.ed25519_signature),
		        { error: at(error, 'ed25519_signature') }),
		    field('older_signature', 'Older signature too', yes(s.older_signature),
		        { error: at(error, 'older_signature') })),
		field('headers', 'Headers of each request', textarea(linesOf(s.headers),
		    { rows: 3 }), { error: at(error, 'headers'),
		    hint: 'one a line: name: value' }),
		field('secret_headers', 'Secret headers', textarea('', { rows: 3 }),
		    { error: at(error, 'secret_headers'), hint: s.secret_headers.length > 0 ?
		        `has ${s.secret_headers.join(', ')}; what is entered replaces all of them` :
		        'their values are never shown again' }),
	];
}

function view(s, isNew, submit, error) {
	const back = isNew ? to(['subscriptions']) : to(['subscriptions', s.id]);
	const hasPlace = error && Object.keys(FRESH).some((name) => at(error, name));
	return [
		crumbs(['Subscriptions', to(['subscriptions'])],
		    isNew ? ['New'] : [s.url, back], ...(isNew ? [] : [['Edit']])),
		heading(isNew ? 'New subscription' : 'Edit subscription'),
		h('form', { class: 'panel form', onsubmit: submit, novalidate: true },
		    basics(s, error), h('h2', null, 'Limits and retries'), limits(s, error),
		    h('h2', null, 'Signatures and headers'), signing(s, error),
		    isNew ? null : h('p', { class: 'hint' }, 'What is in flight finishes; the ' +
		        'next request goes by the new terms.'),
		    error && !hasPlace ? failed(error) : null,
		    h('div', { class: 'actions' },
		        h('button', { type: 'submit', class: 'primary' },
		            isNew ? 'Register' : 'Save'), link('Cancel', back))),
	];
}

function made(body) {
	return [
		heading('Registered'),
		shownOnce('secret', body.secret, h('p', { class: 'small-text' }, body.signing)),
		body.signing_key ? shownOnce('signing key', body.signing_key) : null,
		h('p', null, link('To the subscription', to(['subscriptions', body.id]),
		    { class: 'button primary' })),
	];
}

async function save(id, fields, old, etag) {
	const { body } = await call('PATCH', path`/v1/subscriptions/${id}`,
	    { body: changed(fields, old), etag });
	return body;
}

export async function open(place) {
	const { id } = place.params;
	const isNew = id === undefined;

	if (!isAdmin()) {
		place.paint(heading(place.name), empty('Not for this key',
		    'This takes a key of the role admin.'));
		return;
	}
	place.paint(heading(place.name), loading());
	const { body: s, etag } = isNew ? { body: FRESH } :
	    await call('GET', path`/v1/subscriptions/${id}`, { signal: place.signal });
	const submit = submitter(async (form) => {
		const fields = read(form);
		try {
			if (isNew) {
				place.paint(made((await call('POST', '/v1/subscriptions',
				    { body: changed(fields, { ...FRESH, url: null }) })).body));
				return;
			}
			const body = await save(id, fields, s, etag);
			if (body.signing_key) {
				place.paint(heading('Saved'), shownOnce('signing key', body.signing_key),
				    link('To the subscription', to(['subscriptions', id])));
				return;
			}
			tell('Saved: the next request goes by the new terms');
			go(to(['subscriptions', id]));
		} catch (error) {
			place.paint(view(s, isNew, submit, error));
			document.querySelector('[aria-invalid]')?.focus();
		}
	});
	place.paint(view(s, isNew, submit));
}
