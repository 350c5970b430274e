/* api: requests to Postrider, and to nobody else. */

import { key } from './session.js';

/* Behind a proxy the console may stand in a folder; the API stands beside it. */
const BASE = new URL('../', new URL('.', location.href.split('#')[0]));
const PATIENCE = 15000;

/* The server answered, and said no: RFC 9457. */
export class Problem extends Error {
	constructor(status, body) {
		super(body?.detail ?? body?.title ?? `HTTP status ${status}`);
		this.status = status;
		this.title = body?.title ?? '';
		this.pointer = body?.pointer ?? '';
		this.body = body;
	}
}

/* There was no answer, or none that can be understood. */
class Away extends Error {}

/* True if it may pass by itself. */
export function isAway(error) {
	return error instanceof Away ||
	    (error instanceof Problem && (error.status >= 500 || error.status === 429));
}

/* path`/v1/events/${id}`: what is put in stays one segment. */
export function path(texts, ...ids) {
	return texts.reduce((whole, text, i) =>
	    whole + encodeURIComponent(ids[i - 1]) + text);
}

/* A query of what is set. */
export function query(values) {
	const set = Object.entries(values).filter(
	    ([, value]) => value !== undefined && value !== null && value !== '');
	return set.length === 0 ? '' : `?${new URLSearchParams(set)}`;
}

function headersFor(body, etag, type) {
	const headers = { Authorization: `Bearer ${key() ?? ''}` };
	if (body !== undefined)
		headers['Content-Type'] = type ?? 'application/json';
	if (etag)
		headers['If-Match'] = etag;
	return headers;
}

async function send(method, where, { body, signal, etag, wait = PATIENCE }) {
	const patience = AbortSignal.timeout(wait);
	try {
		const response = await fetch(new URL(where.slice(1), BASE), {
			method,
			headers: headersFor(body, etag),
			/* What is text already goes as it is: no digit is lost. */
			body: typeof body === 'string' ? body : JSON.stringify(body),
			signal: signal ? AbortSignal.any([signal, patience]) : patience,
			cache: 'no-store',
			credentials: 'omit',
			redirect: 'error',
			referrerPolicy: 'no-referrer',
		});
		return [response, await response.text()];
	} catch (error) {
		if (signal?.aborted)
			throw error;
		throw new Away(patience.aborted
		    ? `no answer within ${wait / 1000} s`
		    : 'the server cannot be reached');
	}
}

function parse(response, text) {
	if (text === '')
		return null;
	try {
		return JSON.parse(text);
	} catch {
		throw new Away(`what answered is not Postrider (status ${response.status})`);
	}
}

/* Told of a 401: the key is no longer one. */
let onRefused = () => {};

export function whenRefused(tell) {
	onRefused = tell;
}

function check(response, text) {
	if (response.ok)
		return;
	const problem = new Problem(response.status, parse(response, text));
	if (response.status === 401)
		onRefused(problem);
	throw problem;
}

/* Returns { status, body, etag }; throws Problem or Away, or what aborted it. */
export async function call(method, where, options = {}) {
	const [response, text] = await send(method, where, options);
	check(response, text);
	return { status: response.status, body: parse(response, text),
		etag: response.headers.get('ETag') };
}

/* As it came: JSON that is not to lose a digit. */
export async function getText(where) {
	const [response, text] = await send('GET', where, {});
	check(response, text);
	return text;
}

export async function get(where, signal) {
	return (await call('GET', where, { signal })).body;
}

export async function post(where, body) {
	return (await call('POST', where, { body })).body;
}
