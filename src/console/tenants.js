/* tenants: who is served, for operators. */

import { h } from './dom.js';
import { call, get, query } from './api.js';
import { filter, to } from './router.js';
import { ask } from './dialog.js';
import { time } from './format.js';
import { empty, field, heading, input, link, loading, select, table } from './ui.js';

/* Makes the form by which a view at `segments` is narrowed to a tenant. */
export async function tenantPicker(place, segments, chosen) {
	const { tenants } = await get('/v1/tenants?limit=200', place.signal);
	/* The one that is shown may be beyond them. */
	const names = new Set([...tenants.map(({ name }) => name), chosen]);
	names.delete('');
	return () => h('form', { class: 'filters', onsubmit: (event) => event.preventDefault(),
		onchange: (event) => filter(segments, { tenant: event.target.value }) },
	field('tenant', 'Tenant', select(chosen, [['', 'all tenants'],
		...[...names].map((name) => [name, name])])));
}

function create(again) {
	return ask({ title: 'New tenant', action: 'Make it',
		lines: ['Its keys, subscriptions and events are seen by no other tenant. A tenant ' +
		    'stays for good.'],
		fields: [field('name', 'Name', input('', { required: true }))],
		run: async (form) => {
			const { body } = await call('POST', '/v1/tenants',
			    { body: { name: form.get('name') } });
			return `Tenant ${body.name} is made`;
		} }).then((done) => done && again());
}

export async function open(place) {
	const after = place.query.get('after');

	place.paint(heading('Tenants'), loading());
	const polling = place.live(30000, async (signal) => {
		const { tenants, next_after: next } = await get(
		    `/v1/tenants${query({ limit: 100, after })}`, signal);
		place.paint(heading('Tenants', h('button', { type: 'button', class: 'primary',
			onclick: () => create(() => polling.again()) }, 'New tenant')),
		tenants.length === 0 ? empty('No tenant yet') :
		    h('div', { class: 'panel table-wrap' }, table('Tenants', [
		        { name: 'Name', cell: (t) => link(t.name, to([''], { tenant: t.name })) },
		        { name: 'Keys', cell: (t) => link('its keys',
		            to(['keys'], { tenant: t.name })) },
		        { name: 'Audit', cell: (t) => link('its audit',
		            to(['audit'], { tenant: t.name })) },
		        { name: 'Made', cell: (t) => time(t.created_at) },
		    ], tenants, { key: (t) => t.id })),
		next ? link('More', to(['tenants'], { after: next }), { class: 'button small' }) :
		    null);
	});
}
