// graphile-worker as a webhook sender: `graphile.js fill BACKLOG`, `graphile.js send URL`.
//
// With an order each asset is a queue of the worker's, which is served one job at a time.  What
// makes it fast is set as its documentation says: a local queue of the concurrency and one, and
// outcomes kept in batches.

import pg from 'pg'
import { Logger, makeWorkerUtils, run } from 'graphile-worker'
import { batches, database, sender } from './common.js'

const CONCURRENCY = 100
const CONNECTIONS = 10
const [what, argument] = process.argv.slice(2)
const pgPool = new pg.Pool({ ...database, max: CONNECTIONS })
const leave = () => process.exit(0) // the database goes when all is measured
pgPool.on('error', leave)
pgPool.on('connect', client => client.on('error', leave))

async function fill(backlog) {
  const utils = await makeWorkerUtils({ pgPool })
  await utils.migrate()
  for (const events of batches(backlog)) {
    await utils.addJobs(events.map(payload => ({
      identifier: 'webhook',
      payload,
      queueName: backlog.ordered ? payload.asset : undefined,
      maxAttempts: 10,
    })))
  }
  process.exit(0)
}

async function send(url) {
  await run({
    pgPool,
    noHandleSignals: true,
    taskList: { webhook: sender(url, CONCURRENCY) },
    logger: new Logger(() => () => {}), // a line a job would be a fifth of its cost
    preset: {
      worker: {
        concurrentJobs: CONCURRENCY,
        maxPoolSize: CONNECTIONS,
        localQueue: { size: CONCURRENCY + 1 },
        completeJobBatchDelay: 0,
        failJobBatchDelay: 0,
      },
    },
  })
}

await (what === 'fill' ? fill(JSON.parse(argument)) : send(argument))
