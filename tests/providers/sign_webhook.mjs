// sign_webhook.mjs MODULES SECRET ID SECONDS < BODY: prints the signature that npm's standardwebhooks makes, as Svix does for Resend.
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'

const [modules, secret, id, seconds] = process.argv.slice(2)
const { Webhook } = createRequire(`${modules}/package.json`)('standardwebhooks')
console.log(new Webhook(secret).sign(id, new Date(Number(seconds) * 1000), readFileSync(0, 'utf8')))
