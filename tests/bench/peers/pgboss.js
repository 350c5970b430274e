// pg-boss as a webhook sender: `pgboss.js fill BACKLOG`, `pgboss.js send URL`, `pgboss.js step URL`.
//
// With an order its queue is of the policy that serves each key strictly in turn.  Of one key alone
// its worker would fetch a job twice a second: `step` fetches as soon as the last is settled.

import { PgBoss } from 'pg-boss'
import { batches, database, sender } from './common.js'

const QUEUE = 'webhook'
const BATCH = 100
const FETCHERS = 2
const [what, argument] = process.argv.slice(2)
const boss = new PgBoss({ ...database, supervise: false, schedule: false, max: 10 })
boss.on('error', () => process.exit(0)) // the database goes when all is measured
await boss.start()

async function fill(backlog) {
  await boss.createQueue(QUEUE, {
    policy: backlog.ordered ? 'key_strict_fifo' : 'standard',
    partition: true,
    retryLimit: 10,
    retryBackoff: true,
    deleteAfterSeconds: 86_400,
  })
  for (const events of batches(backlog)) {
    await boss.insert(QUEUE, events.map(data => ({
      data,
      ...(backlog.ordered ? { singletonKey: data.asset } : {}),
    })))
  }
  process.exit(0)
}

async function send(url) {
  const post = sender(url, BATCH * FETCHERS)
  const settle = ({ id, data }) => post(data).then(
    () => ({ id, status: 'completed' }),
    error => ({ id, status: 'failed', output: { message: error.message } }))
  const options = {
    batchSize: BATCH,
    localConcurrency: FETCHERS,
    burstWhenBatchFull: true,
    pollingIntervalSeconds: 0.5,
    perJobResults: true,
  }
  await boss.work(QUEUE, options, jobs => Promise.all(jobs.map(settle)))
}

async function step(url) {
  const post = sender(url, 1)
  for (;;) {
    const jobs = await boss.fetch(QUEUE)
    for (const { id, data } of jobs) {
      await post(data)
      await boss.complete(QUEUE, id)
    }
    if (jobs.length === 0) await new Promise(resolve => setTimeout(resolve, 500))
  }
}

await { fill: () => fill(JSON.parse(argument)), send: () => send(argument), step: () => step(argument) }[what]()
