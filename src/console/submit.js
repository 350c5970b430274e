/* submit: posting an event by hand. */

import { h } from './dom.js';
import { Problem, call } from './api.js';
import { to } from './router.js';
import { mayPost } from './session.js';
import { plural } from './format.js';
import { empty, failed, field, heading, input, link, submitter, textarea } from './ui.js';

const EXAMPLE = `{
  "bar": 4.20,
  "celsius": 61.5,
  "by": "operator console"
}`;

/* The data goes as it was typed: no number loses a digit on its way. */
function bodyOf(form) {
	const members = [['type', form.get('type')], ['asset', form.get('asset')],
		['id', form.get('id')]].filter(([, text]) => text !== '')
	    .map(([name, text]) => `${JSON.stringify(name)}:${JSON.stringify(text)}`);
	return `{${members.join(',')},"data":${form.get('data')}}`;
}

/* What is no JSON is told before it is sent: the server sees one text. */
function checkData(text) {
	try {
		JSON.parse(text);
		return null;
	} catch (error) {
		return `it is not JSON: ${error.message}`;
	}
}

/* The message that belongs to this field. */
function at(error, name) {
	return error instanceof Problem && error.pointer.startsWith(`/${name}`) ?
	    error.message : null;
}

function taken({ status, body }) {
	const what = status === 202 ? 'Accepted' :
	    'It was accepted before, with the same content';
	return h('div', { class: 'panel notice ok', role: 'status' },
	    h('p', { class: 'quiet-title' }, what),
	    h('p', null, link(body.id, to(['events', body.id])),
	        ` for ${plural(body.deliveries, 'endpoint', 'endpoints')}.`),
	    body.deliveries === 0 ? h('p', null, 'No subscription wants this type.') : null);
}

const NAMES = ['type', 'asset', 'id', 'data'];

function view(submit, { error, result }) {
	const hasPlace = error && NAMES.some((name) => at(error, name));
	return [
		heading('Send an event'),
		h('form', { class: 'panel form', onsubmit: submit, novalidate: true },
		    h('div', { class: 'pair' },
		        field('type', 'Type', input('pump.pressure', { required: true }),
		            { error: at(error, 'type'), hint: 'words with dots between them' }),
		        field('asset', 'Asset', input('pump-17'),
		            { error: at(error, 'asset'), hint: 'events of one asset keep their ' +
		                'order; empty for none' })),
		    field('id', 'Id', input(''), { error: at(error, 'id'),
		        hint: 'empty: one is made; the same id is accepted once' }),
		    field('data', 'Data (JSON)', textarea(EXAMPLE, { rows: 8 }),
		        { error: at(error, 'data') }),
		    error && !hasPlace ? failed(error) : null,
		    h('div', { class: 'actions' },
		        h('button', { type: 'submit', class: 'primary' }, 'Send'))),
		result ? taken(result) : null,
	];
}

export async function open(place) {
	if (!mayPost()) {
		place.paint(heading('Send an event'), empty('Not for this key',
		    'Posting takes a key of the role publisher or admin.'));
		return;
	}
	const show = (outcome) => place.paint(view(submit, outcome));
	const submit = submitter(async (form) => {
		const wrong = checkData(form.get('data'));
		try {
			if (wrong !== null)
				throw new Problem(422, { detail: wrong, pointer: '/data' });
			show({ result: await call('POST', '/v1/events', { body: bodyOf(form) }) });
		} catch (error) {
			show({ error });
			document.querySelector('[aria-invalid]')?.focus();
		}
	});
	show({});
}
