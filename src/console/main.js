/* main: the frame around the views: who you are, where you can go. */

import { h, paint } from './dom.js';
import { get, isAway, path, whenRefused } from './api.js';
import { find, go } from './router.js';
import * as session from './session.js';
import { poll, sayStill } from './live.js';
import { crumbs, failed, heading, loading } from './ui.js';
import { signIn } from './login.js';

/* Address, name, and whom it is for. */
const PLACES = [
	['#/', 'Overview', () => session.mayRead() || session.isOperator()],
	['#/subscriptions', 'Subscriptions', session.mayRead],
	['#/deliveries', 'Deliveries', session.mayRead],
	['#/dead', 'Dead letters', session.mayRead],
	['#/assets', 'Assets', session.mayRead],
	['#/events', 'Events', () => !session.isOperator()],
	['#/submit', 'Send an event', session.mayPost],
	['#/tenants', 'Tenants', session.isOperator],
	['#/keys', 'Keys', session.isOperator],
	['#/audit', 'Audit', session.isOperator],
];

const root = document.getElementById('view');
let leave = new AbortController();
let shown = { pattern: null, params: '' };

function isHere(href, pattern) {
	return href === '#/' ? pattern === '/' : pattern.startsWith(href.slice(1));
}

function showFrame(pattern) {
	const me = session.me();
	const nav = document.getElementById('nav');
	document.body.classList.toggle('is-in', me !== null);
	document.body.classList.remove('is-open');
	menu.setAttribute('aria-expanded', 'false');
	paint(nav, me === null ? null : h('ul', null, PLACES.filter(
	    ([, , isFor]) => isFor()).map(([href, name]) => h('li', null,
	    h('a', { href, 'aria-current': isHere(href, pattern) ? 'page' : null },
	        name)))));
	paint(document.getElementById('who'), me === null ? null : [
		h('span', { class: 'who' }, h('strong', null, me.tenant ?? 'all tenants'),
		    ` ${me.role}${me.name ? ` · ${me.name}` : ''}`),
		h('button', { type: 'button', class: 'small', onclick: signOut },
		    'Forget key')]);
}

function signOut() {
	session.forget();
	go('#/');
	show();
}

/* What a view is given: where it is, and how it shows itself. */
function makePlace(found, signal) {
	return {
		...found,
		signal,
		paint(...children) {
			if (!signal.aborted)
				paint(root, ...children);
		},
		title(text) {
			document.title = `${text} · Postrider`;
		},
		/* Ask again and again, and show what ends that, and all of the view. */
		live(every, work) {
			const polling = poll(signal, every, work);
			polling.done.catch((error) => this.fail(error));
			return polling;
		},
		fail(error) {
			if (signal.aborted)
				return;
			leave.abort();
			sayStill();
			paint(root, crumbs([found.name]), heading(found.name),
			    failed(error, isAway(error) ? show : null));
		},
	};
}

async function openView(found, signal) {
	const place = makePlace(found, signal);
	try {
		if (found.module === null)
			throw new Error('there is no such page in the console');
		const view = await import(found.module);
		if (!signal.aborted)
			await view.open(place);
	} catch (error) {
		place.fail(error);
	}
}

/* Who the key is; false if a person has to say so first. */
async function recognise(signal) {
	if (session.me() !== null)
		return true;
	if (session.key() === null)
		return false;
	session.recognise(await get(path`/v1/key`, signal));
	return true;
}

async function show() {
	leave.abort();
	leave = new AbortController();
	const { signal } = leave;
	const found = find(location.hash);
	const params = JSON.stringify(found.params);
	const isNew = found.pattern !== shown.pattern || params !== shown.params;

	shown = { pattern: found.pattern, params };
	sayStill();
	document.title = `${found.name} · Postrider`;
	if (isNew)
		paint(root, h('h1', { class: 'unseen', tabindex: '-1' }, found.name),
		    loading());
	try {
		if (!await recognise(signal)) {
			showFrame(found.pattern);
			signIn(root, show);
			return;
		}
	} catch (error) {
		showFrame(found.pattern);
		makePlace(found, signal).fail(error);
		return;
	}
	/* What the key cannot see is no place to begin with. */
	if (found.pattern === '/' && session.me().role === 'publisher') {
		go('#/submit');
		return;
	}
	showFrame(found.pattern);
	await openView(found, signal);
	if (isNew && signal === leave.signal) {
		scrollTo(0, 0);
		root.querySelector('h1')?.focus({ preventScroll: true });
	}
}

whenRefused((problem) => {
	session.forget();
	leave.abort();
	leave = new AbortController();
	shown = { pattern: null, params: '' };
	showFrame('');
	sayStill();
	signIn(root, show, problem);
});

const menu = document.getElementById('menu');
menu.onclick = () => {
	const isOpen = document.body.classList.toggle('is-open');
	menu.setAttribute('aria-expanded', String(isOpen));
};
document.getElementById('skip').onclick = (event) => {
	event.preventDefault();
	root.querySelector('h1')?.focus();
};
addEventListener('hashchange', show);
show();
