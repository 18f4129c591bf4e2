"""Verifies a token of mailroom and consumes it; docs/redeeming.md explains each step. Call for POST, never for GET.

With psycopg2 or psycopg 3, and a connection that is not in autocommit mode. activate() and recover() return the result (redeemed, invalid,
consumed, expired, not found, wrong status) and the account, and leave no transaction open. When they raise, roll back. `keys` is the
current key and the previous ones. Where mailroom has a schema of its own, write mailroom.tokens and mailroom.accounts.
"""

import base64
import hmac
import re
from pathlib import Path

CONSUME = """
    UPDATE tokens t SET consumed_at = floor(extract(epoch FROM clock_timestamp())) FROM accounts a
    WHERE t.secret = %(secret)s AND t.action = %(action)s AND t.consumed_at IS NULL
      AND t.expires_at > extract(epoch FROM clock_timestamp())
      AND a.id = t.account AND a.status = %(status)s
    RETURNING t.account"""
REASON = """
    SELECT CASE WHEN consumed_at IS NOT NULL THEN 'consumed'
                WHEN expires_at <= extract(epoch FROM clock_timestamp()) THEN 'expired'
                ELSE 'wrong status' END
    FROM tokens WHERE secret = %(secret)s AND action = %(action)s"""
COUNT_ATTEMPT = """
    INSERT INTO recovery_attempts AS r (token, attempts)
    SELECT t.id, 1 FROM tokens t WHERE t.secret = %(secret)s AND t.action = 'password_recovery'
    ON CONFLICT (token) DO UPDATE SET attempts = r.attempts + 1 WHERE r.attempts < 5
    RETURNING r.attempts"""


def load_key(file):
    """Reads a key from a file of 64 hexadecimal digits."""
    text = Path(file).read_text()
    if not re.fullmatch("[0-9A-Fa-f]{64}\n?", text):
        raise ValueError(f"{file} does not hold 64 hexadecimal digits")
    return bytes.fromhex(text.strip())


def decode(token):
    """Returns secret and signature, or None for a malformed token."""
    if not isinstance(token, str) or not re.fullmatch("[A-Za-z0-9_-]{85}[AQgw]", token):
        return None
    data = base64.urlsafe_b64decode(token + "==")
    return data[:32], data[32:]


def is_signed(keys, message, signature):
    return any(hmac.compare_digest(hmac.digest(key, message, "sha256"), signature) for key in keys)


def consume(cursor, secret, action, status):
    """Returns ("redeemed", account), or (why not, None)."""
    values = {"secret": secret, "action": action, "status": status}
    cursor.execute(CONSUME, values)
    redeemed = cursor.fetchone()
    if redeemed:
        return "redeemed", redeemed[0]
    cursor.execute(REASON, values)
    reason = cursor.fetchone()
    return (reason[0] if reason else "not found"), None


def activate(connection, keys, token):
    decoded = decode(token)
    if not decoded:
        return "invalid", None
    secret, signature = decoded
    if not is_signed(keys, b"/activate" + secret, signature):
        return "invalid", None
    with connection.cursor() as cursor:
        result = consume(cursor, secret, "activation", "provisioned")
    connection.commit()
    return result


def recover(connection, keys, token, code, set_password):
    """set_password(cursor, account) stores the new password, without a commit."""
    decoded = decode(token)
    if not decoded or not isinstance(code, str) or not re.fullmatch("[0-9]{5}", code):
        return "invalid", None
    secret, signature = decoded
    with connection.cursor() as cursor:
        cursor.execute(COUNT_ATTEMPT, {"secret": secret})
        admitted = cursor.fetchone()
        connection.commit()
        if not admitted or not is_signed(keys, b"/recover" + secret + code.encode(), signature):
            return "invalid", None
        result, account = consume(cursor, secret, "password_recovery", "active")
        if result == "redeemed":
            set_password(cursor, account)
    connection.commit()
    return result, account
