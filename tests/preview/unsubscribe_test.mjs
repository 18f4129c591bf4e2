// unsubscribe_test.mjs MAILROOM: the pages that the links of mails lead to, in a phone's browser without script, by keyboard,
// in light and dark. Needs a PostgreSQL in PGHOST and PGUSER. Screenshots go to MAILROOM_SCREENSHOTS, if that is set.
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { readFileSync, readdirSync } from 'node:fs'
import { after, before, test } from 'node:test'
import { createInterface } from 'node:readline'
import { join } from 'node:path'
import { Directory, axe, mailroom, openBrowser, openPage } from './rig.mjs'

const screenshots = process.env.MAILROOM_SCREENSHOTS
const database = `unsubscribe_${process.pid}`
const prefix = 'http://127.0.0.1:8088/u/'
const phone = { viewport: { width: 360, height: 640 }, isMobile: true, hasTouch: true }
let browser, directory, environment, listener, url

const run = (command, ...args) => execFileSync(command, args, { encoding: 'utf8', env: { ...process.env, ...environment } })
const psql = sql => run('psql', '-XAtqc', sql, '-d', database).trim()
const off = () => psql("SELECT coalesce(string_agg(topic, ' ' ORDER BY topic), '') FROM mailroom_suppressions")

before(async () => {
  directory = new Directory()
  environment = {
    MAILROOM_DATABASE_URL: `dbname=${database}`, MAILROOM_SECRET_KEY: 'ab'.repeat(32), MAILROOM_SEND_FROM: 'no-reply@app.example',
    MAILROOM_SEND_UNSUBSCRIBE_LINK: `${prefix}{token}`,
  }
  run('createdb', database)
  run(mailroom, 'migrate', '-q')
  psql(`SELECT mailroom_create_topic('news', 'Monthly <b>news</b>', '{"de": "Neues im Monat", "ar": "أخبار الشهر"}'),
    mailroom_create_topic('offers', 'Offers that are described by a title which is longer than a phone is wide')`)
  listener = spawn(mailroom, ['bounce', '--listen', '127.0.0.1:0'], { env: { ...process.env, ...environment }, stdio: ['ignore', 'inherit', 'pipe'] })
  const line = await new Promise(done => createInterface({ input: listener.stderr }).once('line', done))
  url = `http://${/127\.0\.0\.1:\d+/.exec(line)[0]}/u/`
  browser = await openBrowser()
})

after(async () => {
  listener?.kill()
  await browser?.close()
  run('dropdb', '--if-exists', '--force', database)
  directory?.remove()
})

// The address of the page of a new mail.
function linkOfMail() {
  psql("DELETE FROM mailroom_suppressions; SELECT mailroom_send(ARRAY['ada@mail.example'], subject => 'x', text => 'y', topic => 'news')")
  const path = join(directory.path, `mails-${Date.now()}`)
  run(mailroom, 'send', '--once', '--capture', path)
  const [name] = readdirSync(join(path, 'new'))
  const text = readFileSync(join(path, 'new', name), 'latin1').replaceAll('\r\n ', ' ')
  return url + new RegExp(`^List-Unsubscribe: <${prefix}([^>]+)>`, 'm').exec(text)[1]
}

const open = (link, options = {}) => openPage(browser, link, { ...phone, javaScriptEnabled: false, ...options })

test('without script, one button stops the topic, and the preferences bring it back', async () => {
  const page = await open(linkOfMail())
  assert.equal(off(), '')
  await page.getByText('Monthly <b>news</b>').waitFor()
  assert.equal(await page.getByRole('button').count(), 1)
  await page.getByRole('button', { name: 'Unsubscribe' }).click()
  await page.getByRole('heading', { name: 'Unsubscribed' }).waitFor()
  assert.equal(off(), 'news')
  await page.getByRole('link', { name: 'Choose which mails you get' }).click()
  assert.equal(await page.getByRole('checkbox').count(), 2)
  await page.getByRole('checkbox', { name: /news/ }).check()
  await page.getByRole('checkbox', { name: /Offers/ }).uncheck()
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByRole('status').waitFor()
  assert.equal(off(), 'offers')
  assert.ok(await page.getByRole('checkbox', { name: /news/ }).isChecked())
  assert.deepEqual(page.complaints, [])
  assert.deepEqual(await page.context().cookies(), [])
  await page.context().close()
})

test('the keyboard reaches everything', async () => {
  const page = await open(linkOfMail(), { viewport: { width: 800, height: 600 }, isMobile: false, hasTouch: false })
  await page.keyboard.press('Tab')
  await page.keyboard.press('Tab')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Your mails' }).waitFor()
  await page.keyboard.press('Tab')
  await page.keyboard.press('Space')
  await page.keyboard.press('Tab')
  await page.keyboard.press('Tab')
  await page.keyboard.press('Enter')
  await page.getByRole('status').waitFor()
  assert.equal(off(), 'news')
  await page.context().close()
})

test('contrast and structure are those of WCAG AA, light and dark, in the languages of titles', async () => {
  for (const [colorScheme, locale] of [['light', 'en'], ['dark', 'de-AT'], ['dark', 'ar']]) {
    const link = linkOfMail()
    for (const address of [link, link.replace('/u/u', '/u/p')]) {
      const page = await openPage(browser, address, { ...phone, colorScheme, locale, bypassCSP: true })
      if (locale === 'de-AT') await page.getByText('Neues im Monat').waitFor()
      await page.addScriptTag({ path: axe })
      const { violations } = await page.evaluate(() => axe.run(document, {
        runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'],
      }))
      assert.deepEqual(violations.map(each => `${each.id}: ${each.nodes.map(node => node.html)}`), [], `${address}, ${colorScheme}`)
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth), 'it fits the width')
      if (screenshots) await page.screenshot({ path: join(screenshots, `unsubscribe-${locale}-${address.includes('/u/p') ? 'choices' : 'question'}.png`) })
      await page.context().close()
    }
  }
})
