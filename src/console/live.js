/* live: asking again and again, gently, and saying how old the answer is.
 *
 * While nobody looks nothing is asked.  While the server is away the questions
 * come more rarely, up to every half minute, and the page says that what it shows
 * is stale. */

import { h, paint } from './dom.js';
import { isAway } from './api.js';
import { seconds, sentence, timeText } from './format.js';

const SLOWEST = 30000;

/* What the page says of its connection. */
const state = { fresh: null, error: null, next: null, wake: null };

function bar() {
	if (state.error === null)
		return null;
	const since = state.fresh === null ? '' :
	    ` What you see is of ${timeText(state.fresh)}.`;
	const wait = Math.max(0, Math.ceil((state.next - Date.now()) / 1000));
	return h('div', { class: 'stale-bar', role: 'alert' },
	    h('strong', null, 'Stale.'),
	    h('span', null, ` ${sentence(state.error)}${since} `),
	    /* It counts down: for the eye alone. */
	    h('span', { 'aria-hidden': 'true' },
	        wait > 0 ? `Trying again in ${seconds(wait)}. ` : 'Trying now. '),
	    h('button', { type: 'button', onclick: () => state.wake?.() },
	        'Try now'));
}

function show() {
	document.body.classList.toggle('is-stale', state.error !== null);
	paint(document.getElementById('stale'), bar());
	const word = state.error !== null ? 'Stale'
	    : state.fresh === null ? '' : 'Live';
	paint(document.getElementById('live'), word === '' ? null :
	    h('span', { class: `live live-${word.toLowerCase()}` }, word));
}

function sayFresh() {
	state.fresh = new Date().toISOString();
	state.error = null;
	show();
}

function sayStale(error, next, wake) {
	Object.assign(state, { error: error.message, next, wake });
	show();
}

/* Nothing here is asked again: neither live nor stale. */
export function sayStill() {
	Object.assign(state, { fresh: null, error: null });
	show();
}

setInterval(() => state.error !== null && show(), 1000);

/* Wait, and be woken: by its end, by a person, or when the view is left. */
function rest(ms, signal, onWake) {
	return new Promise((resolve) => {
		const timer = setTimeout(resolve, ms);
		signal.addEventListener('abort', resolve, { once: true });
		onWake(() => {
			clearTimeout(timer);
			resolve();
		});
	});
}

function untilSeen(signal) {
	if (!document.hidden)
		return Promise.resolve();
	return new Promise((resolve) => {
		document.addEventListener('visibilitychange', resolve,
		    { once: true, signal });
		signal.addEventListener('abort', resolve, { once: true });
	});
}

/* Run `work` every `every` milliseconds (a number, or a function that says how
 * long) until `signal` aborts.  What it throws that will not pass by itself ends
 * it, and is thrown on.  Returns when it has ended.  `again` of the result of
 * poll.start() asks at once: after a change that a person made. */
export function poll(signal, every, work) {
	let wake = () => {};
	const run = async () => {
		let wait = 0;
		while (!signal.aborted) {
			const usual = typeof every === 'function' ? every() : every;
			try {
				await work(signal);
				if (signal.aborted)
					return;
				wait = usual;
				sayFresh();
			} catch (error) {
				if (signal.aborted)
					return;
				if (!isAway(error))
					throw error;
				wait = Math.min(SLOWEST, Math.max(1000, wait * 2));
				sayStale(error, Date.now() + wait, () => wake());
			}
			await rest(wait, signal, (f) => { wake = f; });
			await untilSeen(signal);
		}
	};
	return { done: run(), again: () => wake() };
}
