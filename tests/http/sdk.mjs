#!/usr/bin/env node
// sdk.mjs MODULES URL KEY: does with SDKs of Resend, as npm has them, what an application does. Prints what it saw as JSON; a wrong answer is an error.

import { createRequire } from 'node:module';
import assert from 'node:assert/strict';

const [modules, url, key] = process.argv.slice(2);
const require = createRequire(`${modules}/node_modules/`);
process.env.RESEND_BASE_URL = url;

/// What a call that must succeed returned.
async function good(call) {
  const { data, error } = await call;
  assert.equal(error, null, JSON.stringify(error));
  return data;
}

const seen = {};
for (const name of ['resend', 'resend-4', 'resend-2']) {
  const { Resend } = require(name);
  const resend = new Resend(key);
  const mail = { from: 'Shop <no-reply@shop.example>', to: ['ada@example.org'], subject: name, text: 'It works.' };
  const sent = await good(resend.emails.send({
    ...mail, html: '<p>It works.</p>', cc: 'cy@example.org', tags: [{ name: 'kind', value: name }],
    attachments: [{ filename: 'a.txt', content: Buffer.from('hello') }],
  }));
  const got = await good(resend.emails.get(sent.id));
  assert.equal(got.subject, name);
  assert.equal(got.object, 'email');
  assert.deepEqual(got.to, mail.to);
  const batch = await good(resend.batch.send([mail, { ...mail, to: 'bob@example.org' }]));
  assert.equal(batch.data.length, 2);
  const refused = await resend.emails.send({ ...mail, to: 'nobody' });
  assert.equal(refused.data, null);
  assert.equal(refused.error.name, 'validation_error');
  seen[name] = { sent: sent.id, batch: batch.data.map((each) => each.id) };
  if (name === 'resend-2') continue;
  // What only newer ones have.
  const planned = await good(resend.emails.send({ ...mail, scheduledAt: 'in 1 hour' }));
  await good(resend.emails.update({ id: planned.id, scheduledAt: new Date(Date.now() + 7_200_000).toISOString() }));
  await good(resend.emails.cancel(planned.id));
  assert.equal((await good(resend.emails.get(planned.id))).last_event, 'canceled');
  if (name !== 'resend') continue;
  const once = [await good(resend.emails.send(mail, { idempotencyKey: 'order/17' })), await good(resend.emails.send(mail, { idempotencyKey: 'order/17' }))];
  assert.equal(once[0].id, once[1].id);
  const listed = await good(resend.emails.list({ limit: 2 }));
  assert.equal(listed.data.length, 2);
  assert.equal(listed.has_more, true);
}
console.log(JSON.stringify(seen));
