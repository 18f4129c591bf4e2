// capture_test.mjs MAILROOM: mails of a database in the page of mailroom send --capture, and a real message in that of
// mailroom template serve. Needs a PostgreSQL in PGHOST and PGUSER. Screenshots go to MAILROOM_SCREENSHOTS, if that is set.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync } from 'node:fs'
import { after, before, test } from 'node:test'
import { join } from 'node:path'
import { Directory, endServers, eventually, mailFrame, mailroom, openBrowser, openPage, serve } from './rig.mjs'

const screenshots = process.env.MAILROOM_SCREENSHOTS
const database = `preview_${process.pid}`
let browser, directory, environment

const run = (command, ...args) => execFileSync(command, args, { encoding: 'utf8', env: { ...process.env, ...environment } })
const psql = sql => run('psql', '-XAtqc', sql, '-d', database).trim()

const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

before(async () => {
  directory = new Directory()
  directory.write('key', '0'.repeat(64) + '\n')
  chmodSync(join(directory.path, 'key'), 0o600)
  directory.write('receipt.subject', 'Receipt for order {{order}}\n')
  directory.write('receipt.html', '<h1>Order {{order}}</h1><img id="logo" src="cid:logo"><p>{{email}}</p>\n')
  environment = { MAILROOM_DATABASE_URL: `dbname=${database}`, MAILROOM_SECRET_KEY_FILE: join(directory.path, 'key'), MAILROOM_SEND_TEMPLATES: directory.path }
  run('createdb', database)
  run(mailroom, 'migrate', '-q')
  browser = await openBrowser()
})

after(async () => {
  endServers()
  await browser?.close()
  run('dropdb', '--if-exists', '--force', database)
  directory?.remove()
})

const send = order => psql(`SELECT mailroom_send(ARRAY['Ada <ada@example.org>'], template => 'receipt', data => '{"order": ${order}}',
  attachments => jsonb_build_array(
    jsonb_build_object('name', 'logo.png', 'content_type', 'image/png', 'content_id', 'logo', 'content', '${pixel}'),
    jsonb_build_object('name', 'terms.txt', 'content_type', 'text/plain', 'content', 'dGVybXM=')))`)

test('a message is shown with its data, its files and an example link', async () => {
  const id = send(17)
  const server = await serve(['template', 'serve', '--listen', '127.0.0.1:0', '--message', id], environment)
  const page = await openPage(browser, server.url)
  await page.getByRole('button', { name: `message ${id}` }).waitFor()
  await page.getByText('Receipt for order 17').waitFor()
  assert.equal(await mailFrame(page).locator('p').textContent(), 'ada@example.org')
  assert.equal(await mailFrame(page).locator('#logo').evaluate(image => image.naturalWidth), 1)
  await page.getByRole('tab', { name: 'Attachments (2)' }).click()
  const download = page.waitForEvent('download')
  await page.getByRole('link', { name: 'terms.txt' }).click()
  assert.equal((await download).suggestedFilename(), 'terms.txt')
  assert.deepEqual(page.complaints, [])
  await page.context().close()
  assert.equal(await server.stop('SIGINT'), 0)
})

test('what is due is shown as it comes, is accepted for the database, and leaves nothing behind', async () => {
  const server = await serve(['send', '--capture', '--listen', '127.0.0.1:0'], environment)
  const page = await openPage(browser, server.url)
  await page.getByRole('heading', { name: 'Receipt for order 17' }).waitFor()
  // The page fills its list after the mail.
  await eventually('the list', async () => await page.locator('#items button').count() === 1)
  send(18)
  await page.getByRole('heading', { name: 'Receipt for order 18' }).waitFor()
  await eventually('the new mail', async () => await mailFrame(page).locator('h1').textContent() === 'Order 18')
  await eventually('the count', async () => await page.locator('#count').textContent() === '2 mails')
  if (screenshots) await page.screenshot({ path: join(screenshots, 'captured.png') })
  await page.getByRole('tab', { name: 'Source' }).click()
  await eventually('the source', async () => (await page.locator('#source').textContent()).startsWith('Return-Path: <shop@app.example>'))
  assert.equal(await page.getByRole('tab', { name: 'Data' }).count(), 0)
  assert.deepEqual(page.complaints, [])
  const kept = server.errors().match(/directory=(\S+)/)[1]
  assert.ok(existsSync(kept))
  await eventually('the records', () => psql('SELECT count(*) FROM mailroom_deliveries WHERE state = $$accepted$$ AND sink = $$capture$$') === '2')
  await page.context().close()
  assert.equal(await server.stop(), 0)
  assert.ok(!existsSync(kept))
})

// The address is that of this host, but not written as one.
test('with another address the page is only for who knows its secret', async () => {
  const server = await serve(['template', 'serve', '--listen', '[::ffff:127.0.0.1]:0'], environment)
  const url = new URL(server.url)
  assert.match(url.pathname, /^\/[0-9a-f]{32}\/$/)
  const at = path => fetch(`http://127.0.0.1:${url.port}${path}`)
  assert.equal((await at(url.pathname)).status, 200)
  assert.equal((await at(`${url.pathname}list`)).status, 200)
  for (const path of ['/', '/list', '/mail/1/html', url.pathname.replace(/.\/$/, 'x/'), url.pathname.slice(0, -2) + '/', `${url.pathname.slice(0, -1)}0/`])
    assert.equal((await at(path)).status, 404, path)
  assert.equal(await server.stop(), 0)
})
