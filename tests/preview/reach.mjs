// reach.mjs MAILROOM [RUNS]: milliseconds of the page with 1,000 templates of five locales: until the mail is shown, and from a
// change of a file, of a partial that all include, or of a file of data until it is seen. The wanted ones: 200 and 300.
import { Directory, eventually, mailFrame, openBrowser, openPage, serve } from './rig.mjs'

const runs = Number(process.argv[3] ?? 9)
const templates = 1000
const locales = ['', '.de', '.fr', '.es', '.pt-BR']

const directory = new Directory()
const paragraph = 'A sentence that a reader of this mail may read or not. '.repeat(20)
const htmlOf = (name, word) => `<!DOCTYPE html><html><body>{{> head}}<h1>${word} {{order}}</h1><p>${name} ${paragraph}</p></body></html>\n`
directory.write('head.mustache', '<p id="head">head 0</p>\n')
for (let i = 0; i < templates; ++i) {
  const name = `mail_${String(i).padStart(4, '0')}`
  for (const locale of locales) {
    directory.write(`${name}${locale}.subject`, `${name}${locale} {{order}}\n`)
    directory.write(`${name}${locale}.txt`, `${paragraph}{{order}}\n`)
    directory.write(`${name}${locale}.html`, htmlOf(name, 'Order'))
  }
  directory.write(`${name}.example.json`, '{"order": 17}\n')
}
const began = performance.now()
const server = await serve(['template', 'serve', '--listen', '127.0.0.1:0'], { MAILROOM_SEND_TEMPLATES: directory.path })
console.log(`start: ${Math.round(performance.now() - began)}`)
const browser = await openBrowser()

function report(what, times) {
  times.sort((a, b) => a - b)
  console.log(`${what}: median ${Math.round(times[Math.floor(times.length / 2)])}, longest ${Math.round(times.at(-1))} (${times.length} runs)`)
}

// What the page asks for, one after the other, without a browser.
const answered = []
for (let i = 0; i < runs; ++i) {
  const start = performance.now()
  const text = async (path, options) => (await fetch(server.url + path, options)).text()
  await text('')
  await text('list')
  const { mail } = JSON.parse(await text('show', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: `{"item": "mail_0${i % 10}00"}` }))
  await text(`mail/${mail.id}/html`)
  answered.push(performance.now() - start)
}
report('all answers for a page', answered)

const opened = []
const empty = []
let page
for (let i = 0; i < runs; ++i) {
  await page?.context().close()
  page = await openPage(browser, 'about:blank')
  const start = performance.now()
  await page.goto(`${server.url}#item=mail_0500`, { waitUntil: 'commit' })
  await mailFrame(page).locator('h1').waitFor()
  opened.push(performance.now() - start)
  await page.context().close()
  page = await openPage(browser, 'about:blank')
  const second = performance.now()
  await page.goto(`${server.url}none`, { waitUntil: 'commit' })
  await page.getByText('there is nothing here').waitFor()
  empty.push(performance.now() - second)
}
report('open', opened)
report('open a page of one line, for comparison', empty)
await page.goto(`${server.url}#item=mail_0500`)
await mailFrame(page).locator('h1').waitFor()

// By the clock of the page, which polls itself each few milliseconds.
async function seen(text, change) {
  const begun = performance.now()
  change()
  await page.waitForFunction(wanted => document.getElementById('subject').textContent.includes(wanted), text, { polling: 5 })
  return performance.now() - begun
}
async function seenInFrame(selector, text, change) {
  const begun = performance.now()
  change()
  await eventually(text, async () => await mailFrame(page).locator(selector).textContent() === text)
  return performance.now() - begun
}
const changed = { subject: [], html: [], data: [], partial: [] }
await new Promise(done => setTimeout(done, 3000))
for (let i = 1; i <= runs; ++i) {
  changed.subject.push(await seen(`changed ${i}`, () => directory.write('mail_0500.subject', `changed ${i} {{order}}\n`)))
  changed.html.push(await seenInFrame('h1', `Purchase${i} 17`, () => directory.write('mail_0500.html', htmlOf('x', `Purchase${i}`))))
  changed.data.push(await seen(` 4${i}`, () => directory.write('mail_0500.example.json', `{"order": 4${i}}\n`)))
  directory.write('mail_0500.example.json', '{"order": 17}\n')
  await page.waitForFunction(() => document.getElementById('subject').textContent.endsWith(' 17'))
  changed.partial.push(await seenInFrame('#head', `head ${i}`, () => directory.write('head.mustache', `<p id="head">head ${i}</p>\n`)))
  await new Promise(done => setTimeout(done, 2000)) // until all are checked again
}
for (const [what, times] of Object.entries(changed)) report(`change of ${what}`, times)
if (page.complaints.length) console.log(page.complaints)
await browser.close()
await server.stop()
directory.remove()
