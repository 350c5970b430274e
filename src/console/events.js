/* events: finding one by its id. */

import { h } from './dom.js';
import { filter, to } from './router.js';
import { mayPost, mayRead } from './session.js';
import { field, heading, input, link } from './ui.js';

export async function open(place) {
	const submit = (event) => {
		event.preventDefault();
		const id = new FormData(event.currentTarget).get('event').trim();
		if (id !== '')
			filter(['events', id], {});
	};
	place.paint(heading('Events'),
	    h('form', { class: 'filters', role: 'search', onsubmit: submit },
	        field('event', 'Event id', input('', { required: true })),
	        h('div', { class: 'actions' },
	            h('button', { type: 'submit', class: 'primary' }, 'Look it up'))),
	    h('p', { class: 'soft' }, 'An event is found by the id that it was posted under, or ' +
	        'that its acceptance answered with. ',
	    mayRead() ? ['By type, asset and time look in the ',
	        link('deliveries', to(['deliveries'])), '. '] : null,
	    mayPost() ? link('Send one', to(['submit'])) : null));
}
