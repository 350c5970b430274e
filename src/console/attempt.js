/* attempt: one try at sending, with where its time went and what came back. */

import { h, svg } from './dom.js';
import { microseconds, time } from './format.js';
import { outcome } from './ui.js';

const PHASES = [['dns', 'DNS'], ['connect', 'connect'], ['tls', 'TLS'],
	['wait', 'wait'], ['receive', 'receive']];
const WIDTH = 500;

/* Phases that took place, as a bar and in words; `longest` is what fills the bar. */
function phases(tried, longest) {
	const taken = PHASES.map(([phase, name]) => [phase, name, tried[`${phase}_us`]])
	    .filter(([, , us]) => us !== null && us !== undefined);
	const all = Math.max(longest ?? 0, taken.reduce((sum, [, , us]) => sum + us, 0));
	let x = 0;
	if (taken.length === 0)
		return null;
	return [
		svg('svg', { class: 'bar', viewBox: `0 0 ${WIDTH} 10`, 'aria-hidden': 'true',
			preserveAspectRatio: 'none' }, taken.map(([phase, , us]) => {
			const width = all > 0 ? us / all * WIDTH : 0;
			const part = svg('rect', { class: `p-${phase}`, x, y: 0,
				width: Math.max(0, width - 1), height: 10 });
			x += width;
			return part;
		})),
		h('p', { class: 'phases' }, taken.map(([phase, name, us]) => h('span', null,
		    svg('svg', { class: 'key-swatch', viewBox: '0 0 10 10',
		        'aria-hidden': 'true' },
		    svg('rect', { class: `p-${phase}`, width: 10, height: 10 })),
		    `${name} ${microseconds(us)}`))),
	];
}

function answer(tried) {
	return [
		tried.headers.length === 0 ? null : h('details', null,
		    h('summary', null, `Headers of the answer (${tried.headers.length})`),
		    h('pre', { class: 'raw' }, tried.headers.map(({ name, value }) =>
		        `${name}: ${value}\n`).join(''))),
		tried.excerpt === null ? null : h('div', null,
		    h('p', { class: 'hint' }, 'How the answer began, as text:'),
		    h('pre', { class: 'raw excerpt', tabindex: '0' }, tried.excerpt)),
	];
}

/* `longest` is the duration, in µs, that its bar is measured by; none: its own. */
export function attempt(tried, name, longest) {
	return h('div', null,
	    h('p', { class: 'line' }, name ? h('strong', null, name) : null,
	        outcome(tried.status, tried.ended),
	        h('span', null, microseconds(tried.duration_us)),
	        time(tried.started_at),
	        tried.remote ? h('span', { class: 'soft' }, `to ${tried.remote}`) : null),
	    tried.reason ? h('p', null, tried.reason) : null,
	    phases(tried, longest), answer(tried));
}
