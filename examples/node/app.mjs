// A small shop: people sign up, sign in by a link, and get a receipt for what they order. PGDATABASE and the other variables
// of libpq name the database, MAILROOM_SECRET_KEY_FILE the key [mailroom.key], PORT the port [8080].
import { createHmac, timingSafeEqual } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import pg from 'pg';

const pool = new pg.Pool();
const key = readKey(process.env.MAILROOM_SECRET_KEY_FILE ?? 'mailroom.key');

const REDEEM = `
  UPDATE mailroom.tokens t SET consumed_at = floor(extract(epoch FROM clock_timestamp()))
  FROM mailroom.mailroom_messages m
  WHERE t.secret = $1 AND t.action = $2 AND t.consumed_at IS NULL
    AND t.expires_at > extract(epoch FROM clock_timestamp()) AND m.id = t.message
  RETURNING m.reference`;

class Refusal extends Error {}

function readKey(file) {
  const text = readFileSync(file, 'latin1').trim();
  if (!/^[0-9A-Fa-f]{64}$/.test(text)) throw new Error(`${file} does not hold 64 hexadecimal digits`);
  return Buffer.from(text, 'hex');
}

/** Calls work(db); what it does is committed as a whole, or not at all. */
async function transaction(work) {
  const db = await pool.connect();
  let failure;
  try {
    await db.query('BEGIN');
    const result = await work(db);
    await db.query('COMMIT');
    return result;
  } catch (error) {
    failure = error;
    throw error;
  } finally {
    db.release(failure); // after a failure it closes the session, which rolls back
  }
}

async function sendLink(db, action, user) {
  await db.query('SELECT mailroom.mailroom_send($1, action => $2, data => $3, reference => $4)',
    [[user.email], action, { name: user.name }, `user:${user.id}`]);
}

/** The id of the user whose link this is, which is used up now. Refuses one that is forged, used or too old. */
async function redeem(db, action, token) {
  const refusal = new Refusal('This link is not valid any more.');
  if (!/^[A-Za-z0-9_-]{85}[AQgw]$/.test(token ?? '')) throw refusal;
  const bytes = Buffer.from(token, 'base64url');
  const secret = bytes.subarray(0, 32);
  const signature = createHmac('sha256', key).update(`/${action}`).update(secret).digest();
  if (!timingSafeEqual(signature, bytes.subarray(32))) throw refusal;
  const { rows } = await db.query(REDEEM, [secret, action]);
  if (rows.length === 0) throw refusal;
  return rows[0].reference.slice('user:'.length);
}

// Whether an address has an account or not, the answer is the same.
const LOOK = 'Thank you. Please look into your mailbox.';

const pages = {
  '/signup': {
    form: '<input name="name"><input name="email"><button>Sign up</button>',
    submit: ({ email, name }) => transaction(async (db) => {
      const { rows } = await db.query(
        'INSERT INTO users (email, name) VALUES ($1, $2) ON CONFLICT (email) DO NOTHING RETURNING id, email, name', [email, name]);
      for (const user of rows) await sendLink(db, 'confirm', user);
      return { text: LOOK };
    }),
  },
  '/confirm': {
    form: '<button>Confirm my address</button>',
    submit: ({ token }) => transaction(async (db) => {
      const user = await redeem(db, 'confirm', token);
      await db.query('UPDATE users SET confirmed_at = now() WHERE id = $1', [user]);
      return { text: 'Your address is confirmed.' };
    }),
  },
  '/login': {
    form: '<input name="email"><button>Mail me a link</button>',
    submit: ({ email }) => transaction(async (db) => {
      const { rows } = await db.query('SELECT id, email, name FROM users WHERE email = $1 AND confirmed_at IS NOT NULL', [email]);
      for (const user of rows) await sendLink(db, 'magic_link', user);
      return { text: LOOK };
    }),
  },
  '/magic_link': {
    form: '<button>Sign in</button>',
    submit: ({ token }) => transaction(async (db) => {
      const user = await redeem(db, 'magic_link', token);
      const { rows } = await db.query('INSERT INTO sessions (user_id) VALUES ($1) RETURNING id', [user]);
      return { text: 'You are signed in.', session: rows[0].id };
    }),
  },
  '/orders': {
    form: '<input name="item"><button>Order</button>',
    submit: ({ item }, session) => transaction(async (db) => {
      const { rows: [user] } = await db.query(
        'SELECT u.id, u.email, u.name FROM sessions s JOIN users u ON u.id = s.user_id WHERE s.id::text = $1', [session]);
      if (!user) throw new Refusal('Please sign in.');
      const { rows: [order] } = await db.query('INSERT INTO orders (user_id, item) VALUES ($1, $2) RETURNING id', [user.id, item]);
      const { rows: [{ price }] } = await db.query('SELECT price FROM items WHERE name = $1', [item]);
      await db.query("SELECT mailroom.mailroom_send($1, template => 'receipt', data => $2, reference => $3)",
        [[user.email], { name: user.name, item, price }, `order:${order.id}`]);
      // If it is sold out, this fails, and the receipt is never sent.
      await db.query('UPDATE items SET stock = stock - 1 WHERE name = $1', [item]);
      return { text: `Thank you for your order ${order.id}.` };
    }),
  },
};

function escaped(text) {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

async function answer(request, response) {
  const url = new URL(request.url, 'http://shop.example');
  const page = pages[url.pathname];
  response.setHeader('Content-Type', 'text/html; charset=utf-8');
  response.setHeader('Cache-Control', 'no-store');
  response.setHeader('Referrer-Policy', 'no-referrer');
  if (!page) return response.writeHead(404).end('There is no such page.');
  // A link shows a button and changes nothing: mail scanners open links too.
  if (request.method !== 'POST') {
    const token = `<input type="hidden" name="token" value="${escaped(url.searchParams.get('token') ?? '')}">`;
    return response.end(`<form method="post" action="${url.pathname}">${token}${page.form}</form>`);
  }
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const fields = Object.fromEntries(new URLSearchParams(Buffer.concat(chunks).toString()));
  const session = /(?:^|; )session=([0-9a-f-]+)/.exec(request.headers.cookie ?? '')?.[1];
  const done = await page.submit(fields, session);
  if (done.session) response.setHeader('Set-Cookie', `session=${done.session}; HttpOnly; SameSite=Lax; Path=/`);
  return response.end(escaped(done.text));
}

createServer(async (request, response) => {
  try {
    await answer(request, response);
  } catch (error) {
    // 22 and 23: the database, or mailroom, refuses what was typed.
    const isTyped = error instanceof Refusal || /^2[23]/.test(error.code ?? '');
    if (!isTyped) console.error(error);
    const text = error instanceof Refusal ? error.message : isTyped ? 'This cannot be right.' : 'Something went wrong.';
    response.writeHead(isTyped ? 400 : 500).end(text);
  }
}).listen(Number(process.env.PORT ?? 8080), '127.0.0.1', function listening() {
  console.log(`http://127.0.0.1:${this.address().port}/signup`);
});
