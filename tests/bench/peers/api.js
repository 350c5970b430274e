// An API in front of a peer's queue: `api.js graphile` or `api.js pgboss`.
//
// POST /v1/events keeps the event and queues its job in one transaction, and answers 202 once that
// is committed.  It prints its port when it listens.

import Fastify from 'fastify'
import pg from 'pg'
import { makeWorkerUtils } from 'graphile-worker'
import { PgBoss } from 'pg-boss'
import { database } from './common.js'

const pool = new pg.Pool({ ...database, max: 20 })
pool.on('error', () => {})
pool.on('connect', client => client.on('error', () => {}))
await pool.query('CREATE TABLE event (id bigserial PRIMARY KEY, body jsonb NOT NULL, at timestamptz NOT NULL DEFAULT now())')

const queues = {
  async graphile() {
    await (await makeWorkerUtils({ pgPool: pool })).migrate()
    return (client, event) => client.query({
      name: 'add',
      text: "SELECT 1 FROM graphile_worker.add_job('webhook', $1::json)",
      values: [JSON.stringify(event)],
    })
  },
  async pgboss() {
    const boss = new PgBoss({ ...database, supervise: false, schedule: false, max: 2 })
    boss.on('error', () => {})
    await boss.start()
    await boss.createQueue('webhook', { partition: true, retryLimit: 10, retryBackoff: true })
    return (client, event) => boss.send('webhook', event, {
      db: { executeSql: (text, values) => client.query(text, values) },
    })
  },
}

const enqueue = await queues[process.argv[2]]()
const app = Fastify({ logger: false })

app.post('/v1/events', async (request, reply) => {
  const client = await pool.connect()
  try {
    await client.query('BEGIN')
    const kept = await client.query({
      name: 'keep',
      text: 'INSERT INTO event (body) VALUES ($1) RETURNING id',
      values: [request.body],
    })
    await enqueue(client, request.body)
    await client.query('COMMIT')
    reply.code(202).send({ id: kept.rows[0].id })
  } catch (error) {
    await client.query('ROLLBACK').catch(() => {})
    reply.code(500).send({ error: error.message })
  } finally {
    client.release()
  }
})

await app.listen({ host: '127.0.0.1', port: 0 })
console.log(app.server.address().port)
