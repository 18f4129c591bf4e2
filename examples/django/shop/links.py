"""Mails with a link: asks for one, and redeems one."""

import base64
import hmac
import json
import re
from pathlib import Path

from django.conf import settings
from django.db import connection

REDEEM = """
    UPDATE mailroom.tokens t SET consumed_at = floor(extract(epoch FROM clock_timestamp()))
    FROM mailroom.mailroom_messages m
    WHERE t.secret = %s AND t.action = %s AND t.consumed_at IS NULL
      AND t.expires_at > extract(epoch FROM clock_timestamp()) AND m.id = t.message
    RETURNING m.reference"""


def send(template_or_action, user, reference, **data):
    """Asks for a mail to the user, in the transaction of the request."""
    name, value = template_or_action
    with connection.cursor() as cursor:
        cursor.execute(f'SELECT mailroom.mailroom_send(%s, {name} => %s, data => %s, reference => %s)',
                       [[user.email], value, json.dumps(dict(data, name=user.first_name)), reference])


def send_link(action, user):
    send(('action', action), user, f'user:{user.pk}')


def redeem(action, token):
    """The id of the user whose link this is, which is used up now; None for one that is forged, used or too old."""
    if not re.fullmatch('[A-Za-z0-9_-]{85}[AQgw]', token):
        return None
    data = base64.urlsafe_b64decode(token + '==')
    key = bytes.fromhex(Path(settings.MAILROOM_KEY_FILE).read_text().strip())
    if not hmac.compare_digest(hmac.digest(key, f'/{action}'.encode() + data[:32], 'sha256'), data[32:]):
        return None
    with connection.cursor() as cursor:
        cursor.execute(REDEEM, [data[:32], action])
        row = cursor.fetchone()
    return row[0].removeprefix('user:') if row else None
