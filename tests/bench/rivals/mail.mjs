// What a worker does with a job: sign its token as a collector does, and write a line.

import { createHmac } from 'node:crypto'
import { writeFileSync, writeSync } from 'node:fs'

const key = Buffer.from(process.env.MAILROOM_SECRET_KEY, 'hex')

/** `action,email,login,token,code` of a job. */
export function mail (job) {
  const secret = Buffer.from(job.secret, 'hex')
  const hmac = createHmac('sha256', key).update(job.action === 1 ? '/activate' : '/recover').update(secret)
  if (job.action === 2) hmac.update(job.code)
  const token = Buffer.concat([secret, hmac.digest()]).toString('base64url')
  return `${job.action},${job.email},${job.login},${token},${job.code}`
}

export function writeLine (text) {
  let rest = Buffer.from(text + '\n')
  while (rest.length > 0) rest = rest.subarray(writeSync(1, rest))
}

/** How many jobs to handle before the end; Infinity: until SIGTERM. */
export const wanted = process.env.BENCH_JOBS ? Number(process.env.BENCH_JOBS) : Infinity

export function sayReady () {
  writeFileSync(process.env.BENCH_READY, '')
}
