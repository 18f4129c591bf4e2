// A shop that mails with Resend's SDK, as it is. RESEND_API_KEY and RESEND_BASE_URL say where to: mailroom's service, and no line of this
// file knows it.

import { createServer } from 'node:http';
import { Resend } from 'resend';

const resend = new Resend(process.env.RESEND_API_KEY);
const from = process.env.MAIL_FROM ?? 'Shop <no-reply@shop.example>';

/// What a call returned. The SDK never throws: an error that nobody looks at is a mail that nobody gets.
async function done(call) {
  const { data, error } = await call;
  if (error) throw Object.assign(new Error(`${error.name}: ${error.message}`), { status: 502 });
  return data;
}

/// The receipt of an order, once, however often the browser asks; and a question a day later, which can be called off.
async function order(number, email) {
  const receipt = await done(resend.emails.send(
    { from, to: email, subject: `Order ${number}`, text: `Thank you for your order ${number}.`, tags: [{ name: 'kind', value: 'receipt' }] },
    { idempotencyKey: `receipt/${number}` }));
  const question = await done(resend.emails.send(
    { from, to: email, subject: 'How was it?', text: `Are you content with order ${number}?`, scheduledAt: 'in 1 day' },
    { idempotencyKey: `question/${number}` }));
  return { receipt: receipt.id, question: question.id };
}

const routes = {
  'POST /orders': (query) => order(query.get('number'), query.get('email')),
  'POST /complaints': async (query) => done(resend.emails.cancel(query.get('question'))),
  'GET /mails': async (query) => (await done(resend.emails.get(query.get('id')))).last_event,
};

createServer(async (request, response) => {
  const url = new URL(request.url, 'http://shop');
  const route = routes[`${request.method} ${url.pathname}`];
  try {
    const answer = route ? await route(url.searchParams) : { routes: Object.keys(routes) };
    response.writeHead(route ? 200 : 404, { 'content-type': 'application/json' });
    response.end(JSON.stringify(answer));
  } catch (error) {
    response.writeHead(error.status ?? 500, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ error: error.message }));
  }
}).listen(Number(process.env.PORT ?? 8080), '127.0.0.1', function listening() {
  console.log(`http://127.0.0.1:${this.address().port}`);
});
