// sqs_server.mjs MODULES PORT QUEUE: the SQS of npm's fauxqs with a queue, on 127.0.0.1, until its standard input ends.
import { isBuiltin, register } from 'node:module'
import { pathToFileURL } from 'node:url'

const [modules, port, queue] = process.argv.slice(2)
// It loads SQLite, which Node.js has from 22.5 on, also where it keeps everything in memory.
if (!isBuiltin('node:sqlite')) {
  const none = 'data:text/javascript,export class DatabaseSync {}'
  const hook = `export const resolve = (name, context, next) =>
    name === 'node:sqlite' ? { url: ${JSON.stringify(none)}, shortCircuit: true } : next(name, context)`
  register(`data:text/javascript,${encodeURIComponent(hook)}`)
}
const { startFauxqs } = await import(pathToFileURL(`${modules}/node_modules/fauxqs/dist/app.js`))
const server = await startFauxqs({ port: Number(port), host: '127.0.0.1', logger: false, defaultRegion: 'us-east-1' })
server.createQueue(queue, { attributes: { VisibilityTimeout: '1' } })
process.stdin.resume()
process.stdin.on('end', () => process.exit(0))
