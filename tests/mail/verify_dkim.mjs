// verify_dkim.mjs MODULES RECORD: what npm's mailauth says of the first DKIM signature of the mail on standard input, whose public key is in the
// TXT record RECORD: a line of JSON with `result` and `signed`, the names of the header fields that the signature covers.
import { createRequire } from 'node:module'

const [modules, record] = process.argv.slice(2)
const { dkimVerify } = createRequire(`${modules}/`)('mailauth/lib/dkim/verify')
const { results } = await dkimVerify(process.stdin, { resolver: async () => [[record]] })
const { status, signingHeaders } = results[0]
console.log(JSON.stringify({ result: status.result, comment: status.comment, signed: signingHeaders?.keys.toLowerCase().split(/\s*:\s*/) }))
