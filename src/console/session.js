/* session: the key that a person entered.
 *
 * It is in this tab's sessionStorage and in the header of each request: never in
 * an address, a cookie or a log.  It is gone with the tab. */

const NAME = 'postrider.key';

export function key() {
	return sessionStorage.getItem(NAME);
}

export function remember(text) {
	sessionStorage.setItem(NAME, text);
}

/* What the key is and may do, as GET /v1/key says; null before it is known. */
let own = null;

export function me() {
	return own;
}

export function recognise(answer) {
	own = answer;
}

export function forget() {
	own = null;
	sessionStorage.removeItem(NAME);
}

export function isAdmin() {
	return own?.role === 'admin';
}

export function isOperator() {
	return own?.role === 'operator';
}

export function mayRead() {
	return own?.role === 'admin' || own?.role === 'viewer';
}

export function mayPost() {
	return own?.role === 'admin' || own?.role === 'publisher';
}
