/* login: asking for a key. */

import { h, paint } from './dom.js';
import { remember } from './session.js';
import { sentence } from './format.js';

/* Show the form in `root`; `enter` goes on once there is a key.  `problem` is why
 * the last one was not taken. */
export function signIn(root, enter, problem) {
	document.title = 'Enter a key · Postrider';
	const submit = (event) => {
		event.preventDefault();
		const key = new FormData(event.target).get('key').trim();
		if (key !== '') {
			remember(key);
			enter();
		}
	};
	paint(root, h('form', { class: 'panel sign-in', onsubmit: submit },
	    h('h1', { tabindex: '-1' }, 'Enter a key'),
	    problem ? h('p', { class: 'error', role: 'alert', id: 'key-error' },
	        `The key was not taken. ${sentence(problem.message)}`) : null,
	    h('div', { class: 'field' },
	        h('label', { for: 'key' }, 'API key'),
	        h('input', { id: 'key', name: 'key', type: 'password', required: true,
	            autocomplete: 'off', spellcheck: 'false', autofocus: true,
	            placeholder: 'pr_…', 'aria-describedby': problem ?
	                'key-error key-hint' : 'key-hint' }),
	        h('p', { class: 'hint', id: 'key-hint' },
	            'It stays in this tab, and is gone when the tab is closed. ',
	            'What you can see and do here is what the key may.')),
	    h('button', { type: 'submit', class: 'primary' }, 'Enter')));
	root.querySelector('#key').focus();
}
