// http2_server.mjs KEY CERTIFICATE: a server on 127.0.0.1 that speaks HTTP/2 over TLS and takes mails as Resend does. Prints its port, and a
// line of JSON for each connection and each request, until its standard input ends.
import { readFileSync } from 'node:fs'
import { createSecureServer } from 'node:http2'

const [key, cert] = process.argv.slice(2).map((path) => readFileSync(path))
const say = (what) => console.log(JSON.stringify(what))
let taken = 0
const server = createSecureServer({ key, cert, allowHTTP1: true }, (request, response) => {
  say({ request: request.httpVersion })
  request.resume()
  request.on('end', () => {
    // Long enough for others to be under way at the same time.
    setTimeout(() => response.end(JSON.stringify({ id: `id-${taken++}` })), 50)
  })
})
server.on('session', () => say({ connection: true }))
server.listen(0, '127.0.0.1', () => say({ port: server.address().port }))
process.stdin.resume()
process.stdin.on('end', () => process.exit(0))
