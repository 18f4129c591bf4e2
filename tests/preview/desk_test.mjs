// desk_test.mjs MAILROOM: the pages of the desk on a narrow phone, without script, by keyboard, in light and dark, with a hostile
// mail. Needs the PostgreSQL of with-postgres for itself, which then asks for passwords. Screenshots go to MAILROOM_SCREENSHOTS, if that is set.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { after, before, test } from 'node:test'
import { join } from 'node:path'
import { axe, endServers, mailroom, openBrowser, openPage, serve, witness } from './rig.mjs'

const screenshots = process.env.MAILROOM_SCREENSHOTS
const database = `desk_${process.pid}`
const phone = { viewport: { width: 320, height: 640 }, isMobile: true, hasTouch: true }
const environment = { MAILROOM_DATABASE_URL: `dbname=${database}`, MAILROOM_SECRET_KEY: 'ab'.repeat(32), MAILROOM_DESK_LISTEN: '127.0.0.1:0' }
const long = 'a'.repeat(150)
let browser, desk, elsewhere, message

const run = (command, ...args) => execFileSync(command, args, { encoding: 'utf8', env: { ...process.env, MAILROOM_SEND_FROM: 'shop@app.example', ...environment } })
const psql = sql => run('psql', '-XAtqc', sql, '-d', database).trim()

before(async () => {
  elsewhere = await witness()
  run('createdb', database)
  run(mailroom, 'migrate', '-q')
  run(mailroom, 'init', '--roles', '--prefix', database)
  psql(`CREATE ROLE ${database}_bob LOGIN PASSWORD 'secret' IN ROLE ${database}_operator`)
  const hostile = `<script>document.title = "x"</script><img src="${elsewhere.url}/img"><style>body{background:url(${elsewhere.url}/css)}</style>`
    + `<form action="${elsewhere.url}/form"><button>Sign in again</button></form><a href="${elsewhere.url}/link">here</a><meta http-equiv="refresh" content="0;url=${elsewhere.url}/meta">`
  message = psql(`SELECT mailroom_send(ARRAY['ada@mail.example'], subject => $$${hostile} ${long}$$, text => $$${hostile}$$, html => $$<p>Hello</p>${hostile}$$,
    reference => 'order:17', send_after => now() + interval '1 day')`)
  psql("SELECT mailroom_send(ARRAY['bob@mail.example'], subject => 'x', text => 'x') FROM generate_series(1, 3)")
  writeFileSync(join(process.env.MAILROOM_TEST_PGDATA, 'pg_hba.conf'), `local all ${process.env.PGUSER} trust\nlocal all all scram-sha-256\n`)
  psql('SELECT pg_reload_conf()')
  desk = await serve(['desk'], environment)
  browser = await openBrowser()
})

after(async () => {
  await browser?.close()
  await desk?.stop()
  endServers()
  elsewhere?.close()
})

async function signedIn(options = {}) {
  const page = await openPage(browser, desk.url, { ...phone, javaScriptEnabled: false, ...options })
  await page.getByLabel('Role of PostgreSQL').fill(`${database}_bob`)
  await page.getByLabel('Password').fill('secret')
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('heading', { name: 'Search' }).waitFor()
  return page
}

const at = path => new URL(path, desk.url).href

test('a mail is found, looked at and cancelled, without script', async () => {
  const page = await signedIn()
  await page.getByRole('searchbox').fill('order:17')
  await page.getByRole('button', { name: 'Search' }).click()
  await page.getByRole('heading', { name: `Message ${message}`, exact: true }).waitFor()
  await page.getByRole('link', { name: 'Cancel' }).click()
  await page.getByText('1 message would be cancelled, for good.').waitFor()
  await page.getByLabel('Reason, for the record').fill('a browser')
  await page.getByRole('button', { name: 'Cancel the message' }).click()
  await page.getByRole('status').waitFor()
  assert.equal(psql("SELECT actor FROM mailroom_operations WHERE reason = 'a browser'"), `${database}_bob@desk`)
  await page.getByRole('link', { name: 'Back' }).click()
  await page.getByRole('heading', { name: `Message ${message}`, exact: true }).waitFor()
  assert.equal(await page.getByRole('link', { name: 'Cancel' }).count(), 0)
  assert.deepEqual(page.complaints, [])
  await page.context().close()
})

test('a hostile mail reaches nobody, and nothing of the page', async () => {
  const page = await signedIn({ javaScriptEnabled: true })
  await page.goto(at(`/message/${message}`))
  await page.frameLocator('iframe').getByText('Hello').waitFor()
  assert.match(await page.title(), /^Message/)
  assert.equal(await page.locator('img, script').count(), 0)
  assert.equal(await page.frameLocator('iframe').locator('script, form, meta[http-equiv=refresh]').count(), 0)
  await page.waitForTimeout(500)
  assert.deepEqual(elsewhere.asked, [])
  await page.context().close()
})

test('the keyboard reaches everything', async () => {
  const page = await signedIn({ viewport: { width: 800, height: 600 }, isMobile: false, hasTouch: false })
  await page.keyboard.press('Tab')
  assert.equal(await page.evaluate(() => document.activeElement.textContent), 'To the content')
  const reached = []
  for (let i = 0; i < 7; ++i) {
    await page.keyboard.press('Tab')
    reached.push(await page.evaluate(() => document.activeElement.textContent || document.activeElement.id))
  }
  assert.deepEqual(reached.slice(0, 3), ['Search', 'Today', 'What is wrong'])
  assert.match(reached[3], /^Sign out/)
  assert.deepEqual(reached.slice(4, 6), ['q', 'Search'])
  await page.getByRole('searchbox').focus()
  await page.keyboard.type(`message:${message}`)
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: `Message ${message}`, exact: true }).waitFor()
  await page.context().close()
})

test('contrast and structure are those of WCAG AA, light and dark, and each page fits 320 px', async () => {
  const later = psql("SELECT mailroom_send(ARRAY['ada@mail.example'], subject => 'x', text => 'x', send_after => now() + interval '1 day')")
  const paths = ['/', '/search?q=bob@mail.example', '/search?q=nobody@mail.example', `/message/${message}`, `/message/${later}/cancel`, `/message/${later}/move`,
    `/message/${message}/resend`, '/suppress?address=ada@mail.example', '/today', '/status', '/nowhere']
  for (const colorScheme of ['light', 'dark']) {
    const page = await signedIn({ colorScheme, javaScriptEnabled: true, bypassCSP: true })
    for (const path of [...paths, '/sign-out']) {
      if (path === '/sign-out') {
        await page.goto(at('/'))
        await page.getByRole('button', { name: 'Sign out' }).click()
        await page.getByRole('heading', { name: 'Sign in' }).waitFor()
      } else {
        await page.goto(at(path))
      }
      await page.addScriptTag({ path: axe })
      const { violations } = await page.evaluate(() => axe.run(document, {
        iframes: false, runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'],
      }))
      assert.deepEqual(violations.map(each => `${each.id}: ${each.nodes.map(node => node.html)}`), [], `${path}, ${colorScheme}`)
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth), `${path} fits the width`)
      if (screenshots) await page.screenshot({ path: join(screenshots, `desk-${colorScheme}-${paths.indexOf(path)}.png`), fullPage: true })
    }
    await page.context().close()
  }
})
