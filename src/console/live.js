/* live: asking again and again, gently, and saying how old the answer is.
 *
 * While nobody looks nothing is asked.  While the server is away the questions
 * come more rarely, up to every half minute, and the page says that what it shows
 * is stale. */

import { h, paint } from './dom.js';
import { isAway } from './api.js';
import { seconds, sentence, timeText } from './format.js';

const SLOWEST = 30000;

/* What the page says of its connection: of what fails, since when it is not
 * fresh, when it is tried again, and what does so at once. */
let isLive = false;
const failing = new Map();

function bar({ error, fresh, next, wake }) {
	const since = fresh === null ? '' : ` What you see is of ${timeText(fresh)}.`;
	const wait = Math.max(0, Math.ceil((next - Date.now()) / 1000));
	return h('div', { class: 'stale-bar', role: 'alert' },
	    h('strong', null, 'Stale.'),
	    h('span', null, ` ${sentence(error.message)}${since} `),
	    /* It counts down: for the eye alone. */
	    h('span', { 'aria-hidden': 'true' },
	        wait > 0 ? `Trying again in ${seconds(wait)}. ` : 'Trying now. '),
	    h('button', { type: 'button', onclick: wake }, 'Try now'));
}

function show() {
	const [first] = failing.values();
	document.body.classList.toggle('is-stale', first !== undefined);
	paint(document.getElementById('stale'), first === undefined ? null : bar(first));
	const word = first !== undefined ? 'Stale' : isLive ? 'Live' : '';
	paint(document.getElementById('live'), word === '' ? null :
	    h('span', { class: `live live-${word.toLowerCase()}` }, word));
}

/* Nothing here is asked again: neither live nor stale. */
export function sayStill() {
	isLive = false;
	failing.clear();
	show();
}

setInterval(() => failing.size > 0 && show(), 1000);

/* Wait, and be woken: by its end, by a person, or when the view is left. */
function rest(ms, signal, onWake) {
	return new Promise((resolve) => {
		const end = () => {
			clearTimeout(timer);
			signal.removeEventListener('abort', end);
			resolve();
		};
		const timer = setTimeout(end, ms);
		signal.addEventListener('abort', end);
		onWake(end);
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
 * it, and is what `done` rejects with.  `again` asks at once: after a change that a
 * person made. */
export function poll(signal, every, work) {
	let isAsked = false;
	let wake = () => {};
	const again = () => {
		isAsked = true;
		wake();
	};
	const run = async () => {
		let fresh = null;
		let wait = 0;
		while (!signal.aborted) {
			isAsked = false;
			try {
				await work(signal);
				if (signal.aborted)
					return;
				wait = typeof every === 'function' ? every() : every;
				fresh = new Date().toISOString();
				isLive = true;
				failing.delete(work);
			} catch (error) {
				if (signal.aborted)
					return;
				if (!isAway(error))
					throw error;
				wait = Math.min(SLOWEST, Math.max(1000, wait * 2));
				failing.set(work, { error, fresh, next: Date.now() + wait,
					wake: again });
			}
			show();
			/* What was asked for meanwhile may not be in the answer. */
			if (!isAsked)
				await rest(wait, signal, (f) => { wake = f; });
			await untilSeen(signal);
		}
	};
	return { done: run(), again };
}
