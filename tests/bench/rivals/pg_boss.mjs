// node pg_boss.mjs prepare|drain|serve. For a backlog: sequential batches of 1,000; the next batch is fetched while
// the last one is completed. For latency: its own loop at the shortest polling interval that it allows.

import { PgBoss } from 'pg-boss'
import { mail, sayReady, wanted, writeLine } from './mail.mjs'

const mode = process.argv[2]
const boss = new PgBoss({ connectionString: process.env.BENCH_URL, supervise: false, schedule: false })
boss.on('error', error => { console.error(error); process.exit(1) })
await boss.start()

async function drain () {
  sayReady()
  let handled = 0
  let jobs = await boss.fetch('mail', { batchSize: 1000 })
  while (jobs.length > 0 && handled < wanted) {
    writeLine(jobs.map(job => mail(job.data)).join(','))
    handled += jobs.length
    const completed = boss.complete('mail', jobs.map(job => job.id))
    jobs = await boss.fetch('mail', { batchSize: 1000 })
    await completed
  }
}

async function serve () {
  const stopped = new Promise(resolve => process.on('SIGTERM', resolve))
  await boss.work('mail', { batchSize: 100, pollingIntervalSeconds: 0.5 }, async jobs => {
    writeLine(jobs.map(job => mail(job.data)).join(','))
  })
  sayReady()
  await stopped
}

if (mode === 'prepare') await boss.createQueue('mail')
if (mode === 'drain') await drain()
if (mode === 'serve') await serve()
await boss.stop({ graceful: false })
process.exit(0)
