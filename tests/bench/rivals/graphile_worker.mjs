// node graphile_worker.mjs prepare|drain|serve. The settings are from its performance page. For a backlog: a local
// queue of 500, 24 concurrent jobs and batched completions. For latency: neither local queue nor batching, so a job
// is taken as soon as its notification arrives.

import { Logger, run, runMigrations } from 'graphile-worker'
import { mail, sayReady, wanted, writeLine } from './mail.mjs'

const mode = process.argv[2]
const logger = new Logger(() => () => {})
const worker = {
  connectionString: process.env.BENCH_URL,
  concurrentJobs: mode === 'drain' ? 24 : 10,
  maxPoolSize: 26,
  pollInterval: 1000,
  logger,
  ...(mode === 'drain' ? { localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 } : {})
}

if (mode === 'prepare') {
  await runMigrations({ preset: { worker } })
} else {
  let handled = 0
  let finish
  const finished = new Promise(resolve => { finish = resolve })
  process.on('SIGTERM', finish)
  if (mode === 'drain') sayReady()
  const runner = await run({
    preset: { worker },
    noHandleSignals: true,
    taskList: {
      mail: job => {
        writeLine(mail(job))
        if (++handled === wanted) finish()
      }
    }
  })
  if (mode === 'serve') sayReady()
  await finished
  await runner.stop()
}
