// What the tests of the page share: a directory of templates, a mailroom that serves it, a browser, and a server that
// nothing should ask for anything.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { createServer } from 'node:http'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { pathToFileURL } from 'node:url'

const modules = '/usr/local/share/mailroom-tests/preview/node_modules'
export const axe = `${modules}/axe-core/axe.min.js`
const { chromium } = (await import(pathToFileURL(`${modules}/playwright-core/index.js`))).default

export const mailroom = process.argv[2] ?? process.env.MAILROOM

export class Directory {
  constructor() {
    this.path = mkdtempSync(join(tmpdir(), 'mailroom-page-'))
  }
  write(name, text) {
    writeFileSync(join(this.path, name), text)
  }
  remove() {
    rmSync(this.path, { recursive: true, force: true })
  }
}

const running = new Set()

// Ends those that a failed test has left, whose pipes would keep this process from its end.
export function endServers() {
  for (const program of running) program.kill()
}

// Runs mailroom until stop(); `url` is the first line that it prints.
export async function serve(args, environment = {}) {
  const program = spawn(mailroom, args, {
    env: { ...process.env, MAILROOM_SEND_FROM: 'Shop <shop@app.example>', MAILROOM_SEND_LINK: 'https://app.example/{action}?token={token}', ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let errors = ''
  program.stderr.on('data', chunk => { errors += chunk })
  running.add(program)
  program.on('exit', () => running.delete(program))
  const ended = new Promise(done => program.on('exit', (code, signal) => done(code ?? signal)))
  const lines = createInterface({ input: program.stdout })
  const url = await Promise.race([new Promise(done => lines.once('line', done)), ended.then(code => Promise.reject(new Error(`ended with ${code}: ${errors}`)))])
  return {
    url,
    errors: () => errors,
    async stop(signal = 'SIGTERM') {
      program.kill(signal)
      return ended
    },
  }
}

export function openBrowser() {
  return chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'] })
}

// A tab, and what its console says that is no news of our own.
export async function openPage(browser, url, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, colorScheme: null, ...options })
  const page = await context.newPage()
  page.complaints = []
  page.on('console', message => {
    if (message.type() !== 'debug') page.complaints.push(`${message.type()}: ${message.text()}`)
  })
  page.on('pageerror', error => page.complaints.push(`error: ${error}`))
  context.on('page', other => { if (other !== page) page.complaints.push(`window: ${other.url()}`) })
  await page.goto(url)
  return page
}

// Counts what is asked of it.
export async function witness() {
  const asked = []
  const server = createServer((request, response) => {
    asked.push(`${request.method} ${request.url}`)
    response.setHeader('Access-Control-Allow-Origin', '*')
    response.end('<title>elsewhere</title>')
  })
  await new Promise(done => server.listen(0, '127.0.0.1', done))
  return { asked, url: `http://127.0.0.1:${server.address().port}`, close: () => server.close() }
}

export async function eventually(what, check, patience = 10_000) {
  const end = Date.now() + patience
  for (;;) {
    try {
      const value = await check()
      if (value) return value
      if (Date.now() > end) assert.fail(`${what}: not within ${patience} ms`)
    } catch (error) {
      if (Date.now() > end) throw error
    }
    await new Promise(done => setTimeout(done, 20))
  }
}

// The document of the mail within the page.
export function mailFrame(page) {
  return page.frameLocator('#frame')
}
