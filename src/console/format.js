/* format: numbers and times as people read them. */

import { h } from './dom.js';

const LOCALE = 'en-GB';
const whole = new Intl.NumberFormat(LOCALE, { maximumFractionDigits: 0 });
const three = new Intl.NumberFormat(LOCALE, { maximumSignificantDigits: 3 });
const clock = new Intl.DateTimeFormat(LOCALE,
	{ hour: '2-digit', minute: '2-digit', second: '2-digit' });
const minute = new Intl.DateTimeFormat(LOCALE,
	{ hour: '2-digit', minute: '2-digit' });
const day = new Intl.DateTimeFormat(LOCALE, { day: 'numeric', month: 'short' });
const dayAndYear = new Intl.DateTimeFormat(LOCALE,
	{ day: 'numeric', month: 'short', year: 'numeric' });

export const NONE = '–';

/* What a server says, as a sentence. */
export function sentence(text) {
	const whole = text.charAt(0).toUpperCase() + text.slice(1);
	return /[.!?]$/.test(whole) ? whole : `${whole}.`;
}

/* A count; the API stops counting at `cap`. */
export function count(n, cap) {
	if (n === null || n === undefined)
		return NONE;
	return whole.format(n) + (cap !== undefined && n >= cap ? '+' : '');
}

export function plural(n, one, many, cap) {
	return `${count(n, cap)} ${n === 1 ? one : many}`;
}

/* Few digits, whatever the size. */
export function number(n) {
	if (n === null || n === undefined)
		return NONE;
	return Math.abs(n) >= 1000 ? whole.format(n) : three.format(n);
}

/* A share; what is not all is never shown as all. */
export function percent(share) {
	if (share === null || share === undefined)
		return NONE;
	const shown = share * 100;
	if (shown < 100 && shown > 99.9)
		return '> 99.9 %';
	if (shown > 0 && shown < 0.1)
		return '< 0.1 %';
	return `${Number(shown.toFixed(1))} %`;
}

export function milliseconds(ms) {
	if (ms === null || ms === undefined)
		return NONE;
	return ms < 1000 ? `${three.format(ms)} ms` : seconds(ms / 1000);
}

export function microseconds(us) {
	if (us === null || us === undefined)
		return NONE;
	return us < 1000 ? `${whole.format(us)} µs` : milliseconds(us / 1000);
}

export function seconds(s) {
	if (s === null || s === undefined)
		return NONE;
	if (s < 60)
		return `${s < 10 ? three.format(s) : whole.format(s)} s`;
	const units = [['d', 86400], ['h', 3600], ['min', 60], ['s', 1]];
	const first = units.findIndex(([, size]) => s >= size);
	let rest = Math.floor(s);
	return units.slice(first, first + 2).map(([unit, size]) => {
		const n = Math.floor(rest / size);
		rest -= n * size;
		return n > 0 ? `${n} ${unit}` : '';
	}).filter((text) => text !== '').join(' ');
}

function isToday(date) {
	return date.toDateString() === new Date().toDateString();
}

/* Local: the time alone if it is today. */
export function timeText(iso) {
	const date = new Date(iso);
	if (isToday(date))
		return clock.format(date);
	const sameYear = date.getFullYear() === new Date().getFullYear();
	return `${(sameYear ? day : dayAndYear).format(date)} ${clock.format(date)}`;
}

/* For an axis: `withDay` where the day matters. */
export function tickText(date, withDay) {
	return withDay ? day.format(date) : minute.format(date);
}

function utcText(iso) {
	return `${iso.replace('T', ' ').replace('Z', '')} UTC`;
}

/* Local, with UTC to the microsecond on hover. */
export function time(iso) {
	if (iso === null || iso === undefined)
		return NONE;
	return h('time', { datetime: iso, title: utcText(iso) }, timeText(iso));
}

/* How far it is from now: "in 12 s", "3 min ago". */
export function distance(iso, now = Date.now()) {
	const away = (new Date(iso).getTime() - now) / 1000;
	if (Math.abs(away) < 1)
		return 'now';
	return away > 0 ? `in ${seconds(Math.round(away))}`
	    : `${seconds(Math.round(-away))} ago`;
}

export function ago(iso) {
	if (iso === null || iso === undefined)
		return NONE;
	return h('time', { datetime: iso, title: `${timeText(iso)} · ${utcText(iso)}` },
	    distance(iso));
}

/* What a person typed into datetime-local, as the API takes it; '' for none. */
export function fromLocal(text) {
	return text === '' ? '' : new Date(text).toISOString();
}

export function toLocal(iso) {
	if (!iso)
		return '';
	const date = new Date(iso);
	if (Number.isNaN(date.getTime()))
		return '';
	return new Date(date.getTime() - date.getTimezoneOffset() * 60000)
	    .toISOString().slice(0, 19);
}
