/* charts: small plots over time, as SVG.
 *
 * A chart has axes with units, a reading under the pointer or the arrow keys, a
 * sentence for those who do not see it, and its values as a table.  Lines differ by
 * their strokes, not by colour alone. */

import { h, keep, paint, svg } from './dom.js';
import { NONE, tickText, time, timeText } from './format.js';

const HEIGHT = 168;
const EDGE = { left: 52, right: 10, top: 10, bottom: 22 };
const MINUTE = 60000;
const STEPS = [5, 10, 15, 30, 60, 120, 180, 240, 360, 720].map((n) => n * MINUTE);

/* The round number at or above `n`. */
function roundUp(n) {
	const size = 10 ** Math.floor(Math.log10(n));
	return size * [1, 2, 2.5, 5, 10].find((step) => step * size >= n * 0.9999);
}

function stackHeight(bucket, series, value) {
	return series.reduce((sum, each) => sum + (value(bucket, each.key) ?? 0), 0);
}

/* series: { key, name, tone, style }; `value(bucket, key)` is a number or null;
 * `format(n)` is it with its unit; `top` is the axis's end, where it is known. */
export function makeChart({ title, series, kind, value, format, top }) {
	const reading = h('p', { class: 'reading', 'aria-live': 'polite' });
	const plot = svg('svg', { class: 'plot', role: 'img', tabindex: '0',
		height: HEIGHT });
	const values = h('details', { ontoggle: () => showValues() },
	    h('summary', null, 'Values'), h('div', { class: 'table-wrap' }));
	const node = keep(h('figure', { class: 'chart panel' },
	    h('figcaption', null, h('h3', null, title), h('div', { class: 'legend' },
	        series.map((each) => legend(each, kind)))),
	    plot, reading, values));
	let data = { buckets: [], seconds: 60 };
	let at = null;

	const scaleOf = () => {
		const width = Math.max(260, plot.clientWidth || 560);
		const { buckets, seconds } = data;
		const begin = buckets.length > 0 ? Date.parse(buckets[0].at) : 0;
		const length = Math.max(1, buckets.length) * seconds * 1000;
		const inner = width - EDGE.left - EDGE.right;
		const most = Math.max(...buckets.map((bucket) => kind === 'bars' ?
		    stackHeight(bucket, series, value) :
		    Math.max(0, ...series.map((each) => value(bucket, each.key) ?? 0))), 0);
		const high = top ?? (most > 0 ? roundUp(most) : 1);
		return { width, begin, length, high,
			x: (ms) => EDGE.left + (ms - begin) / length * inner,
			y: (n) => HEIGHT - EDGE.bottom -
			    n / high * (HEIGHT - EDGE.top - EDGE.bottom),
			step: inner / Math.max(1, buckets.length) };
	};

	const showReading = () => {
		const bucket = data.buckets[at ?? data.buckets.length - 1];
		if (bucket === undefined) {
			reading.textContent = 'Nothing was recorded yet.';
			return;
		}
		reading.textContent = `${timeText(bucket.at)}: ${series.map((each) =>
			`${each.name} ${shown(bucket, each)}`).join(' · ')}`;
	};
	const shown = (bucket, each) => {
		const n = value(bucket, each.key);
		return n === null ? NONE : format(n);
	};
	const showValues = () => paint(values.lastChild, values.open ?
	    valueTable(title, series, data.buckets, shown) : null);
	const draw = () => {
		const scale = scaleOf();
		plot.setAttribute('viewBox', `0 0 ${scale.width} ${HEIGHT}`);
		plot.setAttribute('aria-label', spoken(title, series, data.buckets, shown));
		plot.replaceChildren(...axes(scale, format),
		    ...(kind === 'bars' ? bars(scale, data.buckets, series, value) :
		        lines(scale, data.buckets, series, value)),
		    ...cursor(scale, at));
		showReading();
		showValues();
	};
	const point = (index) => {
		at = index === null ? null :
		    Math.min(data.buckets.length - 1, Math.max(0, index));
		draw();
	};

	plot.onpointermove = (event) => {
		const box = plot.getBoundingClientRect();
		const scale = scaleOf();
		const x = (event.clientX - box.left) * scale.width / box.width;
		point(Math.floor((x - EDGE.left) / scale.step));
	};
	plot.onpointerleave = () => point(null);
	plot.onblur = () => point(null);
	plot.onkeydown = (event) => {
		const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
		if (by === undefined)
			return;
		event.preventDefault();
		point((at ?? data.buckets.length - 1) + by);
	};
	new ResizeObserver(draw).observe(plot);
	return { node, update(buckets, seconds) {
		data = { buckets, seconds };
		if (at !== null && at >= buckets.length)
			at = null;
		draw();
	} };
}

function legend({ name, tone, style }, kind) {
	const mark = kind === 'bars' ?
	    svg('rect', { class: `f-${tone}`, width: 12, height: 10 }) :
	    svg('line', { class: `s-${tone} ${style ?? ''}`, x1: 0, y1: 5, x2: 20, y2: 5,
	        'stroke-width': 2 });
	return h('span', null, svg('svg', { viewBox: '0 0 20 10', 'aria-hidden': 'true' },
	    mark), name);
}

function axes(scale, format) {
	const parts = [];
	for (const share of [0, 0.5, 1]) {
		const y = scale.y(scale.high * share);
		parts.push(svg('line', { class: 'axis', x1: EDGE.left, x2: scale.width - EDGE.right,
			y1: y, y2: y }),
		svg('text', { x: EDGE.left - 6, y: y + 4, 'text-anchor': 'end' },
		    format(scale.high * share)));
	}
	return [...parts, ...timeTicks(scale)];
}

/* At round local times, as many as there is room for. */
function timeTicks(scale) {
	const room = (scale.width - EDGE.left - EDGE.right) / 64;
	const step = STEPS.find((each) => scale.length / each <= room) ?? STEPS.at(-1);
	const shift = new Date(scale.begin).getTimezoneOffset() * MINUTE;
	const parts = [];
	for (let t = Math.ceil((scale.begin - shift) / step) * step + shift;
		t <= scale.begin + scale.length; t += step) {
		const date = new Date(t);
		const isDay = date.getHours() === 0 && date.getMinutes() === 0 &&
		    scale.length > 6 * 60 * MINUTE;
		parts.push(svg('line', { class: 'axis', x1: scale.x(t), x2: scale.x(t),
			y1: HEIGHT - EDGE.bottom, y2: HEIGHT - EDGE.bottom + 4 }),
		svg('text', { x: scale.x(t), y: HEIGHT - 5, 'text-anchor': 'middle' },
		    tickText(date, isDay)));
	}
	return parts;
}

function bars(scale, buckets, series, value) {
	return buckets.flatMap((bucket, i) => {
		let low = 0;
		return series.map((each) => {
			const n = value(bucket, each.key) ?? 0;
			const y = scale.y(low + n);
			const bar = svg('rect', { class: `f-${each.tone}`,
				x: EDGE.left + i * scale.step + 0.5, y,
				width: Math.max(1, scale.step - 1),
				height: Math.max(0, scale.y(low) - y) });
			low += n;
			return n > 0 ? bar : null;
		}).filter(Boolean);
	});
}

function lines(scale, buckets, series, value) {
	return series.flatMap(({ key, tone, style }) => {
		const points = buckets.map((bucket, i) => {
			const n = value(bucket, key);
			return n === null ? null :
			    [EDGE.left + (i + 0.5) * scale.step, scale.y(n)];
		});
		const steps = points.map((point, i) => point === null ? '' :
		    `${i > 0 && points[i - 1] !== null ? 'L' : 'M'}${point[0]} ${point[1]}`);
		/* A point without neighbours would be no line. */
		const alone = points.filter((point, i) => point !== null &&
		    (points[i - 1] ?? null) === null && (points[i + 1] ?? null) === null);
		return [svg('path', { class: `s-${tone} ${style ?? ''}`, d: steps.join('') }),
			...alone.map(([x, y]) => svg('circle',
			    { class: `f-${tone}`, cx: x, cy: y, r: 2.2 }))];
	});
}

function cursor(scale, at) {
	if (at === null)
		return [];
	const x = EDGE.left + (at + 0.5) * scale.step;
	return [svg('line', { class: 'cursor', x1: x, x2: x, y1: EDGE.top,
		y2: HEIGHT - EDGE.bottom })];
}

/* What it shows, in a sentence. */
function spoken(title, series, buckets, shown) {
	const last = buckets.at(-1);
	if (last === undefined)
		return `${title}: nothing was recorded yet.`;
	return `${title}, from ${timeText(buckets[0].at)} to ${timeText(last.at)}. Latest: ${
		series.map((each) => `${each.name} ${shown(last, each)}`).join(', ')}.` +
	    ' The arrow keys read values; all of them are in the table that follows.';
}

function valueTable(title, series, buckets, shown) {
	return h('table', { class: 'grid' }, h('caption', { class: 'unseen' }, title),
	    h('thead', null, h('tr', null, h('th', { scope: 'col' }, 'Time'),
	        series.map((each) => h('th', { scope: 'col', class: 'num' }, each.name)))),
	    h('tbody', null, [...buckets].reverse().map((bucket) => h('tr', null,
	        h('td', { 'data-label': 'Time' }, time(bucket.at)),
	        series.map((each) => h('td', { class: 'num', 'data-label': each.name },
	            shown(bucket, each)))))));
}
