/* dom: elements without markup.
 *
 * Whatever a stranger chose (URLs, ids, what a receiver answered) becomes a text
 * node or an attribute's value, never markup: nothing here or elsewhere makes
 * HTML of text.  Links lead to places within the console and nowhere else.
 *
 * paint() brings what stands in a parent to what shall stand there, and keeps the
 * nodes that can stay, so that a view which is painted anew every few seconds
 * keeps its focus, selection and scroll. */

const SVG = 'http://www.w3.org/2000/svg';

/* What each node listens to, since paint() hands that on. */
const handlers = new WeakMap();

/* Nodes that keep their own content: paint() moves them, and leaves them alone. */
const kept = new WeakSet();

export function keep(node) {
	kept.add(node);
	return node;
}

function setHandler(node, name, handler) {
	node[name] = handler;
	handlers.set(node, { ...handlers.get(node), [name]: handler });
}

function setAttribute(node, name, value) {
	if (name.startsWith('on')) {
		setHandler(node, name, value);
	} else if (name === 'href' && !String(value).startsWith('#')) {
		throw new Error('a link leads out of the console');
	} else if (name === 'src' || name === 'style' || name === 'srcdoc') {
		throw new Error(`${name} is not for the console`);
	} else if (value === true) {
		node.setAttribute(name, '');
	} else {
		node.setAttribute(name, String(value));
	}
}

function fill(node, attributes, children) {
	for (const [name, value] of Object.entries(attributes ?? {}))
		if (value !== undefined && value !== null && value !== false)
			setAttribute(node, name, value);
	node.append(...flatten(children));
	return node;
}

/* Children as nodes; null and false are none. */
function flatten(children) {
	return children.flat(Infinity)
	    .filter((child) => child !== null && child !== undefined &&
	        child !== false)
	    .map((child) => child instanceof Node ? child
	        : document.createTextNode(String(child)));
}

/* An element: h('a', { href: '#/', onclick: f }, 'text', another, null). */
export function h(tag, attributes, ...children) {
	return fill(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes, ...children) {
	return fill(document.createElementNS(SVG, tag), attributes, children);
}

function keyOf(node) {
	return node.nodeType === Node.ELEMENT_NODE
	    ? node.getAttribute('data-key') : null;
}

/* True if `old` can become `fresh`. */
function isAlike(old, fresh) {
	return old === fresh ||
	    (!kept.has(old) && !kept.has(fresh) &&
	        old.nodeName === fresh.nodeName && keyOf(old) === keyOf(fresh) &&
	        old.getAttribute?.('type') === fresh.getAttribute?.('type'));
}

/* The attributes that a person changes are theirs. */
const PEOPLES = new Set(['open']);

/* What a person entered stays, until the view itself says something else. */
function updateAttributes(old, fresh) {
	const isNewValue = old.nodeName === 'INPUT' &&
	    old.getAttribute('value') !== fresh.getAttribute('value');
	const isNewChoice = old.nodeName === 'OPTION' &&
	    old.hasAttribute('selected') !== fresh.hasAttribute('selected');
	for (const { name } of [...old.attributes])
		if (!fresh.hasAttribute(name) && !PEOPLES.has(name))
			old.removeAttribute(name);
	for (const { name, value } of [...fresh.attributes])
		if (old.getAttribute(name) !== value && !PEOPLES.has(name))
			old.setAttribute(name, value);
	if (old.type === 'checkbox')
		old.checked = fresh.checked;
	else if (isNewValue)
		old.value = fresh.value;
	if (isNewChoice)
		old.selected = fresh.selected;
	const before = handlers.get(old) ?? {};
	const after = handlers.get(fresh) ?? {};
	for (const name of Object.keys(before))
		if (!(name in after))
			setHandler(old, name, null);
	for (const [name, handler] of Object.entries(after))
		setHandler(old, name, handler);
}

function update(old, fresh) {
	if (old === fresh)
		return;
	if (old.nodeType !== Node.ELEMENT_NODE) {
		if (old.data !== fresh.data)
			old.data = fresh.data;
		return;
	}
	updateAttributes(old, fresh);
	paintAll(old, [...fresh.childNodes]);
}

/* The node from `at` on that can become `fresh`. */
function findAlike(at, fresh) {
	if (at === null || isAlike(at, fresh))
		return at;
	if (fresh.parentNode === at.parentNode && kept.has(fresh))
		return fresh;
	const key = keyOf(fresh);
	if (key === null)
		return null;
	for (let node = at.nextSibling; node !== null; node = node.nextSibling)
		if (isAlike(node, fresh))
			return node;
	return null;
}

function paintAll(parent, fresh) {
	let at = parent.firstChild;

	for (const node of fresh) {
		const old = findAlike(at, node);
		if (old === null) {
			parent.insertBefore(node, at);
		} else if (old === at) {
			at = at.nextSibling;
			update(old, node);
		} else {
			parent.insertBefore(old, at);
			update(old, node);
		}
	}
	while (at !== null) {
		const next = at.nextSibling;
		at.remove();
		at = next;
	}
}

/* Let `children` be what stands in `parent`. */
export function paint(parent, ...children) {
	const focused = document.activeElement;

	paintAll(parent, flatten(children));
	/* What is moved loses its focus. */
	if (focused !== document.activeElement && focused?.isConnected)
		focused.focus({ preventScroll: true });
}
