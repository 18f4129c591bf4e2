#!/usr/bin/env node
// receive_events.mjs MODULES SECRET [STATUSES]: takes events as an application does that has Resend's SDK. Prints its port, then a line of JSON for each request.
// It answers STATUSES (400,302) one after the other, then 200, and ends with standard input.

import { createRequire } from 'node:module';
import { createServer } from 'node:http';

const [modules, secret, statuses] = process.argv.slice(2);
const { Resend } = createRequire(`${modules}/node_modules/`)('resend');
const { Webhook } = createRequire(`${modules}/node_modules/resend/`)('standardwebhooks');
const resend = new Resend('re_a');
const answers = (statuses ?? '').split(',').filter(Boolean).map(Number);

/// True if `check` throws nothing for the octets as they came, and throws for another octet.
function verifies(check, body) {
  let isRefused = false;
  try {
    check(`${body} `);
  } catch {
    isRefused = true;
  }
  try {
    return isRefused && JSON.stringify(check(body)) === JSON.stringify(JSON.parse(body));
  } catch {
    return false;
  }
}

const server = createServer(async (request, response) => {
  const body = Buffer.concat(await request.toArray()).toString();
  const header = (name) => request.headers[name];
  const svix = { id: header('svix-id'), timestamp: header('svix-timestamp'), signature: header('svix-signature') };
  const webhook = Object.fromEntries(['id', 'timestamp', 'signature'].map((name) => [`webhook-${name}`, header(`webhook-${name}`)]));
  const status = answers.shift() ?? 200;
  console.log(JSON.stringify({
    status, id: svix.id, body, timestamp: svix.timestamp, signature: svix.signature,
    sdk: verifies((payload) => resend.webhooks.verify({ payload, headers: svix, webhookSecret: secret }), body),
    standard: verifies((payload) => new Webhook(secret).verify(payload, webhook), body),
  }));
  response.writeHead(status, { location: '/elsewhere', 'content-type': 'application/json' });
  response.end(JSON.stringify({ tokens: [{ id: 1, outcome: 'rejected' }] }));
});
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
process.stdin.on('end', () => process.exit()).resume();
