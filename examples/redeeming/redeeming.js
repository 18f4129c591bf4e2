// Verifies a token of mailroom and consumes it; docs/redeeming.md explains each step. Call for POST, never for GET.
// With pg and its pool. An account is a string, as pg returns every bigint. The result is redeemed, invalid, consumed, expired, not
// found or wrong status. `keys` is the current key and the previous ones. Where mailroom has a schema of its own, write mailroom.tokens
// and mailroom.accounts.
const { createHmac, timingSafeEqual } = require('node:crypto');
const { readFileSync } = require('node:fs');

const CONSUME = `
  UPDATE tokens t SET consumed_at = floor(extract(epoch FROM clock_timestamp())) FROM accounts a
  WHERE t.secret = $1 AND t.action = $2 AND t.consumed_at IS NULL
    AND t.expires_at > extract(epoch FROM clock_timestamp())
    AND a.id = t.account AND a.status = $3
  RETURNING t.account`;
const REASON = `
  SELECT CASE WHEN consumed_at IS NOT NULL THEN 'consumed'
              WHEN expires_at <= extract(epoch FROM clock_timestamp()) THEN 'expired'
              ELSE 'wrong status' END AS reason
  FROM tokens WHERE secret = $1 AND action = $2`;
const COUNT_ATTEMPT = `
  INSERT INTO recovery_attempts AS r (token, attempts)
  SELECT t.id, 1 FROM tokens t WHERE t.secret = $1 AND t.action = 'password_recovery'
  ON CONFLICT (token) DO UPDATE SET attempts = r.attempts + 1 WHERE r.attempts < 5
  RETURNING r.attempts`;
const INVALID = { result: 'invalid' };

/** Reads a key from a file of 64 hexadecimal digits. */
function loadKey(file) {
  const text = readFileSync(file, 'latin1');
  if (!/^[0-9A-Fa-f]{64}\n?$/.test(text)) throw new Error(`${file} does not hold 64 hexadecimal digits`);
  return Buffer.from(text.trim(), 'hex');
}

/** Returns secret and signature, or null for a malformed token. */
function decode(token) {
  if (typeof token !== 'string' || !/^[A-Za-z0-9_-]{85}[AQgw]$/.test(token)) return null;
  const data = Buffer.from(token, 'base64url');
  return { secret: data.subarray(0, 32), signature: data.subarray(32) };
}

function isSigned(keys, message, signature) {
  return keys.some((key) => timingSafeEqual(createHmac('sha256', key).update(message).digest(), signature));
}

/** Returns { result: 'redeemed', account }, or { result: why not }. */
async function consume(db, secret, action, status) {
  const redeemed = await db.query(CONSUME, [secret, action, status]);
  if (redeemed.rows.length > 0) return { result: 'redeemed', account: redeemed.rows[0].account };
  const reason = await db.query(REASON, [secret, action]);
  return { result: reason.rows.length > 0 ? reason.rows[0].reason : 'not found' };
}

async function activate(pool, keys, token) {
  const decoded = decode(token);
  if (!decoded) return INVALID;
  const { secret, signature } = decoded;
  if (!isSigned(keys, Buffer.concat([Buffer.from('/activate'), secret]), signature)) return INVALID;
  return consume(pool, secret, 'activation', 'provisioned');
}

/** setPassword(client, account) stores the new password, without a commit. */
async function recover(pool, keys, token, code, setPassword) {
  const decoded = decode(token);
  if (!decoded || typeof code !== 'string' || !/^[0-9]{5}$/.test(code)) return INVALID;
  const { secret, signature } = decoded;
  const admitted = await pool.query(COUNT_ATTEMPT, [secret]);
  const message = Buffer.concat([Buffer.from('/recover'), secret, Buffer.from(code)]);
  if (admitted.rows.length === 0 || !isSigned(keys, message, signature)) return INVALID;
  const client = await pool.connect();
  let failure;
  try {
    await client.query('BEGIN');
    const outcome = await consume(client, secret, 'password_recovery', 'active');
    if (outcome.result === 'redeemed') await setPassword(client, outcome.account);
    await client.query('COMMIT');
    return outcome;
  } catch (error) {
    failure = error;
    throw error;
  } finally {
    client.release(failure); // after a failure it closes the session, which rolls back
  }
}

module.exports = { loadKey, activate, recover };
