// page_test.mjs MAILROOM: the page of mailroom template serve in a headless Chromium. Screenshots go to MAILROOM_SCREENSHOTS, if that is set.
import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { get } from 'node:http'
import { join } from 'node:path'
import { Directory, axe, eventually, mailFrame, openBrowser, openPage, serve, witness } from './rig.mjs'

const screenshots = process.env.MAILROOM_SCREENSHOTS
let browser, directory, server, page, elsewhere

const html = body => `<!DOCTYPE html>
<html lang="en"><head><title>Receipt</title><style>
body { font-family: sans-serif; margin: 2em; background: #ffffff; color: #222222 }
.box { border: 1px solid #999; padding: 1em; max-width: 40em }
@media (prefers-color-scheme: dark) { body { background: rgb(17, 24, 32); color: #eeeeee } }
@media (max-width: 400px) { body { margin: 1em } }
</style></head><body>${body}</body></html>
`
const receipt = html('<h1>Order {{order}}</h1><div class="box"><p>Total: <b>{{total}}</b></p><p><a href="https://shop.example/orders">Your orders</a></p></div>')

function writeReceipt() {
  directory.write('receipt.subject', 'Receipt for order {{order}}\n')
  directory.write('receipt.txt', 'Order {{order}}: {{total}}\n')
  directory.write('receipt.html', receipt)
  directory.write('receipt.de.subject', 'Beleg {{order}}\n')
  directory.write('receipt.de.txt', 'Bestellung {{order}}: {{total}}\n')
  directory.write('receipt.de.html', receipt.replace('Order', 'Bestellung').replace('Total', 'Summe'))
  directory.write('receipt.example.json', '{"order": 17, "total": "12.00 €"}\n')
}

before(async () => {
  directory = new Directory()
  elsewhere = await witness()
  writeReceipt()
  server = await serve(['template', 'serve', '--listen', '127.0.0.1:0'], { MAILROOM_SEND_TEMPLATES: directory.path })
  browser = await openBrowser()
})

after(async () => {
  await browser?.close()
  assert.equal(await server?.stop(), 0)
  elsewhere?.close()
  directory?.remove()
})

beforeEach(async () => {
  await page?.context().close()
  writeReceipt()
  page = await openPage(browser, `${server.url}#item=receipt`)
  await page.getByText('Receipt for order 17').waitFor()
})

const picture = name => screenshots && page.screenshot({ path: join(screenshots, `${name}.png`) })
const heading = () => mailFrame(page).locator('h1').textContent()
const clean = () => assert.deepEqual(page.complaints, [])

test('subject, text, HTML, headers, source and size of a mail', async () => {
  await eventually('the HTML', async () => await heading() === 'Order 17')
  assert.match(await page.locator('#size').textContent(), /^[\d,]+ bytes/)
  await picture('light-600')
  await page.getByRole('tab', { name: 'Text' }).click()
  assert.equal((await page.locator('#text').textContent()).trim(), 'Order 17: 12.00 €')
  await page.getByRole('tab', { name: 'Headers' }).click()
  await page.getByRole('cell', { name: 'Shop <shop@app.example>' }).waitFor()
  await page.getByRole('tab', { name: 'Source' }).click()
  await eventually('the source', async () => (await page.locator('#source').textContent()).includes('Content-Transfer-Encoding: quoted-printable'))
  assert.equal(await page.getByRole('tab', { name: 'Attachments' }).count(), 0)
  clean()
})

test('another locale, and a filter', async () => {
  await page.getByLabel('Locale').selectOption('de')
  await page.getByText('Beleg 17').waitFor()
  await eventually('the German HTML', async () => await heading() === 'Bestellung 17')
  await page.reload()
  await page.getByText('Beleg 17').waitFor()
  await page.getByLabel('Filter').fill('rec')
  assert.deepEqual(await page.locator('#items button').allTextContents(), ['receipt', 'recovery'])
  assert.equal(await page.locator('#count').textContent(), '2 of 3 templates')
  clean()
})

test('three widths, light and dark', async () => {
  for (const width of [360, 600, 960]) {
    await page.getByLabel(String(width)).check()
    assert.equal(await mailFrame(page).locator('html').evaluate(() => innerWidth), width)
    for (const scheme of ['light', 'dark']) {
      await page.getByLabel(scheme).check()
      const expected = scheme === 'dark' ? 'rgb(17, 24, 32)' : 'rgb(255, 255, 255)'
      await eventually(`${scheme} at ${width}`, async () =>
        await mailFrame(page).locator('body').evaluate(body => getComputedStyle(body).backgroundColor) === expected)
      await picture(`${scheme}-${width}`)
    }
    await page.getByLabel('light').check()
  }
  clean()
})

test('a broken template shows file and line beside the last good version, and works again without a reload', async () => {
  await page.evaluate(() => { window.isSame = true })
  directory.write('receipt.html', receipt.replace('{{total}}', '{{/total}}'))
  await page.getByText(/receipt\.html:7: /).waitFor()
  await page.getByText('Below is the last version that worked.').waitFor()
  assert.equal(await heading(), 'Order 17')
  await eventually('the mark in the list', async () => (await page.locator('#items').textContent()).includes('receipt error'))
  await picture('error')
  directory.write('receipt.html', receipt.replace('Order', 'Purchase'))
  await eventually('the new version', async () => await heading() === 'Purchase 17')
  assert.ok(await page.locator('#problem').isHidden())
  await eventually('no mark in the list', async () => !(await page.locator('#items').textContent()).includes('error'))
  assert.ok(await page.evaluate(() => window.isSame))
  clean()
})

test('data that is wrong, and data that is typed', async () => {
  directory.write('receipt.example.json', '{"order": 17,\n "total": }\n')
  await page.getByText('receipt.example.json:2: ').waitFor()
  directory.write('receipt.example.json', '{"order": 18, "total": "1.00"}\n')
  await page.getByText('Receipt for order 18').waitFor()
  await page.getByRole('tab', { name: 'Data' }).click()
  await page.locator('#data').fill('{"order": "<b>19</b>", "total": 2}')
  await page.getByText('Receipt for order <b>19</b>').waitFor()
  await page.locator('#data').fill('{"order": 19}')
  await page.getByText(/receipt\.\w+:\d+: neither the data nor mailroom has \{\{total\}\}/).waitFor()
  await picture('data')
  await page.getByRole('button', { name: 'Use the file again' }).click()
  await page.getByText('Receipt for order 18').waitFor()
  clean()
})

const hostile = () => html(`
<h1>Order {{order}}</h1>
<script>top.location = '${elsewhere.url}/script'; window.hasRun = true</script>
<img src="${elsewhere.url}/image.png" onerror="document.title = 'run'" alt="remote">
<img src=x onerror="fetch('${elsewhere.url}/onerror')">
<body onload="fetch('${elsewhere.url}/onload')">
<meta http-equiv="refresh" content="0; url=${elsewhere.url}/refresh">
<base href="${elsewhere.url}/base/"><link rel="stylesheet" href="${elsewhere.url}/style.css">
<style>@import url("${elsewhere.url}/import.css"); h1 { background: url(${elsewhere.url}/css.png) }</style>
<iframe src="${elsewhere.url}/frame"></iframe><object data="${elsewhere.url}/object"></object><embed src="${elsewhere.url}/embed">
<svg onload="fetch('${elsewhere.url}/svg')"><image href="${elsewhere.url}/svg.png"/></svg>
<video src="${elsewhere.url}/video" poster="${elsewhere.url}/poster.png" autoplay></video>
<table background="${elsewhere.url}/table.png"><tr><td>x</td></tr></table>
<p><a id="top" href="${elsewhere.url}/top" target="_top">top</a> <a id="self" href="${elsewhere.url}/self">self</a>
<a id="script" href="javascript:top.location='${elsewhere.url}/js'">script</a></p>
<form action="${elsewhere.url}/form" method="post"><input name="a" value="b" autofocus><button id="post">post</button></form>`)

test('a template that tries to run script, to leave, to load and to post does none of it', async () => {
  directory.write('receipt.html', hostile())
  await mailFrame(page).locator('#post').waitFor()
  for (const id of ['top', 'self', 'script', 'post']) await mailFrame(page).locator(`#${id}`).click()
  await mailFrame(page).locator('#top').press('Enter')
  await mailFrame(page).locator('input').press('Enter')
  await page.waitForTimeout(300) // for what should not come
  assert.equal(await mailFrame(page).locator('html').evaluate(() => window.hasRun), undefined)
  assert.equal(page.url().split('#')[0], server.url)
  assert.equal(await heading(), 'Order 17')
  assert.deepEqual(elsewhere.asked, [])
  await picture('hostile')
  clean()
})

// The sandbox and the policy alone hold what the first line of defence, which takes such things out of the HTML, does not know.
test('the sandbox and the policy hold by themselves', async () => {
  const evasive = html(`<h1>Order {{order}}</h1><img id="i" src="data:image/gif;base64,R0lGODlhAQABAAAAACw=">
<style>h1 { background: u\\72l(${elsewhere.url}/escaped.png) } b { background-image: image-set("${elsewhere.url}/set.png" 1x) }</style><b>x</b>`)
  directory.write('receipt.html', evasive)
  await mailFrame(page).locator('#i').waitFor()
  const frame = page.frames().find(each => each.url().includes('/html'))
  // As a script in the mail would, if one were let in.
  assert.equal(await frame.evaluate(() => self.origin), 'null')
  await frame.evaluate(url => {
    const script = document.createElement('script')
    script.textContent = 'window.hasRun = true'
    document.body.append(script)
    const image = document.createElement('img')
    image.src = url + '/added.png'
    document.body.append(image)
    const form = document.createElement('form')
    Object.assign(form, { action: url + '/added', method: 'post' })
    document.body.append(form)
    form.submit()
    try { top.location = url + '/top' } catch { /* refused */ }
    try { window.open(url + '/window') } catch { /* refused */ }
    return fetch(url + '/fetch').catch(() => null)
  }, elsewhere.url)
  await page.waitForTimeout(300)
  assert.equal(await frame.evaluate(() => window.hasRun), undefined)
  assert.equal(page.url().split('#')[0], server.url)
  assert.equal(page.context().pages().length, 1)
  assert.deepEqual(elsewhere.asked, [])
  await frame.evaluate(url => { location = url + '/self' }, elsewhere.url).catch(() => {})
  await page.waitForTimeout(300)
  assert.deepEqual(elsewhere.asked, [])
})

test('remote images are loaded and links are followed when that is asked for', async () => {
  directory.write('receipt.html', html(`<h1>Order {{order}}</h1><img src="${elsewhere.url}/image.png" alt="remote"> <a id="out" href="${elsewhere.url}/out">out</a>`))
  await page.getByText('Load remote images (1)').click()
  await eventually('the image', () => elsewhere.asked.includes('GET /image.png'))
  await page.getByLabel('Follow links').check()
  const opened = page.context().waitForEvent('page')
  await mailFrame(page).locator('#out').click()
  await (await opened).waitForURL(`${elsewhere.url}/out`)
  assert.equal(page.url().split('#')[0], server.url)
  elsewhere.asked.length = 0
})

test('a page of another site reads nothing: not by a name that points here, not by a request of its own', async () => {
  const { port } = new URL(server.url)
  const status = headers => new Promise((done, failed) => get({ host: '127.0.0.1', port, path: '/list', headers }, answer => {
    answer.resume()
    done(answer.statusCode)
  }).on('error', failed))
  for (const host of ['localhost:8025', '127.0.0.1', '127.9.9.9:1', '[::1]:8025']) assert.equal(await status({ host }), 200, host)
  for (const host of ['evil.example', '127.evil.example', 'localhost.evil.example', '127.0.0.1.evil.example']) assert.equal(await status({ host }), 403, host)
  assert.equal(await status({ 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors' }), 403)
  await page.goto(`${elsewhere.url}/`)
  const seen = await page.evaluate(url => fetch(url + 'list', { mode: 'no-cors' }).then(answer => answer.type, () => 'refused'), server.url)
  assert.equal(seen, 'refused')
  elsewhere.asked.length = 0
})

test('everything works by the keyboard', async () => {
  await page.keyboard.press('/')
  await page.keyboard.type('rec')
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('ArrowDown')
  await page.getByText('Choose a new password', { exact: true }).waitFor()
  await page.keyboard.press('ArrowUp')
  await page.getByText('Receipt for order 17').waitFor()
  const focus = name => eventually(`the focus on ${name}`, async () => {
    await page.keyboard.press('Tab')
    return await page.evaluate(() => document.activeElement.id || document.activeElement.value) === name
  })
  await focus('locale')
  await page.keyboard.press('ArrowDown')
  await page.getByText('Beleg 17').waitFor()
  await focus('tab-html')
  await page.keyboard.press('ArrowRight')
  assert.ok(await page.locator('#panel-text').isVisible())
  await page.keyboard.press('ArrowLeft')
  await focus('600')
  await page.keyboard.press('ArrowRight')
  assert.match(await page.locator('#frame').getAttribute('class'), /w960/)
  await focus('light')
  await page.keyboard.press('ArrowRight')
  assert.match(await page.locator('#frame').getAttribute('class'), /dark/)
  await focus('frame')
  await picture('keyboard')
  clean()
})

test('contrast and structure are those of WCAG AA, light and dark, in each part', async () => {
  for (const colorScheme of ['light', 'dark']) {
    // The checker writes into the page, which the page's own policy forbids.
    const checked = await openPage(browser, `${server.url}#item=receipt`, { colorScheme, bypassCSP: true })
    await checked.getByText('Receipt for order 17').waitFor()
    await checked.addScriptTag({ path: axe })
    const check = async what => {
      const { violations } = await checked.evaluate(() => axe.run(document, {
        iframes: false, runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'],
      }))
      assert.deepEqual(violations.map(each => `${each.id}: ${each.nodes.map(node => node.html)}`), [], `${what}, ${colorScheme}`)
    }
    for (const tab of ['HTML', 'Text', 'Headers', 'Source', 'Data']) {
      await checked.getByRole('tab', { name: tab }).click()
      await check(tab)
    }
    directory.write('receipt.html', receipt.replace('{{total}}', '{{/total}}'))
    directory.write('receipt.fr.txt', 'Commande {{order}}\n')
    await checked.getByText(/receipt\.html:7: /).waitFor()
    await check('an error')
    if (screenshots) await checked.screenshot({ path: join(screenshots, `page-${colorScheme}.png`) })
    writeReceipt()
    await checked.context().close()
  }
})
