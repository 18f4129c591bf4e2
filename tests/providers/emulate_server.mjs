// emulate_server.mjs MODULES PORT: the Resend of npm's emulate, on 127.0.0.1, until its standard input ends.
import { pathToFileURL } from 'node:url'

const [modules, port] = process.argv.slice(2)
const { createEmulator } = await import(pathToFileURL(`${modules}/node_modules/emulate/dist/api.js`))
await createEmulator({ service: 'resend', port: Number(port) })
process.stdin.resume()
process.stdin.on('end', () => process.exit(0))
