/* keys: who may ask for what, for operators. */

import { h } from './dom.js';
import { call, get, path, query } from './api.js';
import { to } from './router.js';
import { me } from './session.js';
import { ask } from './dialog.js';
import { ago, fromLocal, time } from './format.js';
import { badge, empty, field, heading, input, link, loading, select, table } from './ui.js';
import { shownOnce } from './subscription_actions.js';
import { tenantPicker } from './tenants.js';

const ROLES = [['publisher', 'publisher: posts events'],
	['viewer', 'viewer: reads all of its tenant'],
	['admin', 'admin: all of its tenant'],
	['operator', 'operator: looks after all tenants']];

function create(tenant, again) {
	return ask({ title: 'New key', action: 'Make it',
		lines: ['Whoever has the key may do what its role may. It is shown once.'],
		fields: [
			field('role', 'Role', select('publisher', ROLES)),
			field('tenant', 'Tenant', input(tenant), { hint: 'empty for an operator' }),
			field('name', 'Name', input(''), { hint: 'whose it is, or what for' }),
			field('expires_at', 'Expires', input('', { type: 'datetime-local' }),
			    { hint: 'empty: never' })],
		run: async (form) => {
			const body = { role: form.get('role'), tenant: form.get('tenant'),
				name: form.get('name'), expires_at: fromLocal(form.get('expires_at')) };
			for (const name of Object.keys(body))
				if (body[name] === '')
					delete body[name];
			const made = (await call('POST', '/v1/keys', { body })).body;
			return shownOnce('key', made.key);
		} }).then((done) => done && again());
}

function revoke(key, again) {
	return ask({ title: 'Revoke this key?', action: 'Revoke for good', danger: true,
		lines: [`Key ${key.id}${key.name ? ` (${key.name})` : ''} of ${
			key.tenant ?? 'an operator'} is refused from now on. Whoever uses it gets ` +
		    '401. It cannot be undone.', key.id === me().id ?
			'It is the very key that you are using: you will be signed out.' : ''],
		run: async () => {
			await call('POST', path`/v1/keys/${key.id}/revoke`);
			return `Key ${key.id} is revoked`;
		} }).then((done) => done && again());
}

function state(key) {
	if (key.revoked_at !== null)
		return badge('disabled', 'revoked');
	if (key.expires_at !== null && Date.parse(key.expires_at) < Date.now())
		return badge('disabled', 'expired');
	return badge('active', key.id === me().id ? 'active, yours' : 'active');
}

function columns(again) {
	return [
		{ name: 'Key', cell: (k) => [`#${k.id}`, k.name ? ` ${k.name}` : ''] },
		{ name: 'Tenant', cell: (k) => k.tenant ?? 'all' },
		{ name: 'Role', cell: (k) => k.role },
		{ name: 'State', cell: state },
		{ name: 'Made', class: 'tight', cell: (k) => time(k.created_at) },
		{ name: 'Last used', class: 'tight', cell: (k) => k.last_used_at === null ?
		    'never' : ago(k.last_used_at) },
		{ name: 'Expires', class: 'tight', cell: (k) => k.expires_at === null ? 'never' :
		    time(k.expires_at) },
		{ name: 'Do', cell: (k) => k.revoked_at !== null ?
		    ['since ', time(k.revoked_at)] : h('button', { type: 'button',
		        class: 'small danger', 'aria-label': `Revoke key ${k.id}`,
		        onclick: () => revoke(k, again) }, 'Revoke') },
	];
}

export async function open(place) {
	const tenant = place.query.get('tenant') ?? '';
	const after = place.query.get('after');

	place.paint(heading('Keys'), loading());
	const picker = await tenantPicker(place, ['keys'], tenant);
	const polling = place.live(15000, async (signal) => {
		const again = () => polling.again();
		const { keys, next_after: next } = await get(
		    `/v1/keys${query({ tenant, limit: 100, after })}`, signal);
		place.paint(heading('Keys', h('button', { type: 'button', class: 'primary',
			onclick: () => create(tenant, again) }, 'New key')),
		picker(), keys.length === 0 ? empty('No key here') : h('div', { class: 'panel table-wrap' },
		    table('Keys', columns(again), keys, { key: (k) => k.id })),
		next ? link('More', to(['keys'], { tenant, after: next }),
		    { class: 'button small' }) : null);
	});
}
