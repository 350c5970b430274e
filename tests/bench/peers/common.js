// What all peers share: the database, the events of a backlog, a signed request.
// PGHOST, PGDATABASE and PGUSER name the database, as for every client of it.

import crypto from 'node:crypto'
import { Pool } from 'undici'

export const database = {
  host: process.env.PGHOST,
  database: process.env.PGDATABASE,
  user: process.env.PGUSER,
}

const SECRET = crypto.randomBytes(32)
const BODY = 1024

// Event n of a backlog; the last argument of the scripts describes it, as JSON.
function event(n, backlog) {
  let asset
  if (n < backlog.hot * backlog.events) asset = 'hot'
  else if (backlog.assets) asset = `a${n % backlog.assets}`
  const made = {
    id: `evt_${String(n).padStart(10, '0')}`,
    type: 'reading',
    asset,
    timestamp: new Date().toISOString(),
    data: { n, note: '' },
  }
  made.data.note = 'x'.repeat(BODY - JSON.stringify(made).length)
  return made
}

// The whole backlog, in the order of delivery, some at a time.
export function* batches(backlog, size = 1000) {
  for (let first = 0; first < backlog.events; first += size) {
    const length = Math.min(size, backlog.events - first)
    yield Array.from({ length }, (_, i) => event(first + i, backlog))
  }
}

export function sender(url, connections) {
  const target = new URL(url)
  const pool = new Pool(target.origin, { connections, pipelining: 1, keepAliveTimeout: 60_000 })

  // One signed POST.  It throws unless the answer is 2xx, so that the queue tries again.
  return async function send(event) {
    const body = JSON.stringify(event)
    const time = Math.floor(Date.now() / 1000)
    const mac = crypto.createHmac('sha256', SECRET).update(`${event.id}.${time}.${body}`)
    const answer = await pool.request({
      path: target.pathname,
      method: 'POST',
      body,
      headers: {
        'content-type': 'application/json',
        'webhook-id': event.id,
        'webhook-timestamp': String(time),
        'webhook-signature': `v1,${mac.digest('base64')}`,
      },
      headersTimeout: 15_000,
      bodyTimeout: 15_000,
    })
    await answer.body.dump()
    if (answer.statusCode < 200 || answer.statusCode > 299) throw new Error(`HTTP ${answer.statusCode}`)
  }
}
