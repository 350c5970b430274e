/* history: how it went in the last hour or day, as charts. */

import { h, keep, paint } from './dom.js';
import { get, query } from './api.js';
import { to } from './router.js';
import { milliseconds, number, percent } from './format.js';
import { makeChart } from './charts.js';

const SPANS = [['hour', 'Last hour'], ['day', 'Last day']];
const PERCENTILES = [
	{ key: 'p50', name: 'p50', tone: 'ok' },
	{ key: 'p95', name: 'p95', tone: 'warn', style: 'dash' },
	{ key: 'p99', name: 'p99', tone: 'soft', style: 'dots' },
];

function latency(title, member) {
	return makeChart({ title, kind: 'lines', series: PERCENTILES, format: milliseconds,
		value: (bucket, key) => bucket[member]?.[key] ?? null });
}

function makeCharts(seconds) {
	return [
		makeChart({ title: 'Attempts a second', kind: 'bars',
			format: (n) => `${number(n)}/s`,
			series: [{ key: 'delivered', name: 'delivered', tone: 'ok' },
				{ key: 'failed', name: 'failed', tone: 'bad' }],
			value: (bucket, key) => bucket[key] / seconds() }),
		makeChart({ title: 'Success rate', kind: 'lines', format: percent, top: 1,
			series: [{ key: 'success', name: 'success', tone: 'ok' }],
			value: (bucket) => bucket.success }),
		latency('Time of one attempt', 'attempt_ms'),
		latency('From acceptance to delivery', 'delivery_ms'),
	];
}

/* The charts of a view at `segments`; start() begins to ask.  `asked` narrows what
 * is asked for. */
export function historyCharts(place, segments, asked) {
	const span = place.query.get('span') === 'day' ? 'day' : 'hour';
	let width = 60;
	const charts = makeCharts(() => width);
	const note = h('p', { class: 'hint' });
	const rest = Object.fromEntries(place.query);
	const switcher = h('div', { class: 'actions', role: 'group', 'aria-label': 'Span' },
	    SPANS.map(([value, name]) => h('a', { class: 'button small',
	        href: to(segments, { ...rest, span: value === 'hour' ? '' : value }),
	        'aria-current': value === span ? 'true' : null }, name)));
	const node = keep(h('section', { class: 'history', 'aria-label': 'History' },
	    h('div', { class: 'heading' }, h('h2', null, 'History'), switcher),
	    h('div', { class: 'columns' }, charts.map((chart) => chart.node)), note));
	const load = async (signal) => {
		const history = await get(`/v1/state/history${query({ span, ...asked })}`,
		    signal);
		width = history.bucket_seconds;
		charts.forEach((chart) => chart.update(history.buckets, width));
		paint(note, history.until === null ?
		    'Nothing was summed up yet: a dispatcher does it every few seconds.' : null);
	};
	return { node, start: () => place.live(span === 'hour' ? 10000 : 60000, load) };
}
