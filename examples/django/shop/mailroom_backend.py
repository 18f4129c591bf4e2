"""Makes every mail of Django a message of mailroom: docs/messages.md has the same."""

import base64
import json

from django.core.mail.backends.base import BaseEmailBackend
from django.db import connection


class MailroomBackend(BaseEmailBackend):
    """Asks mailroom for each mail, in the transaction of the default database."""

    def send_messages(self, messages):
        with connection.cursor() as cursor:
            for message in messages:
                cursor.execute(
                    "SELECT mailroom_send(%s::text[], subject => %s, text => %s, html => %s, cc => %s::text[],"
                    " bcc => %s::text[], sender => %s, reply_to => %s, headers => %s, attachments => %s)",
                    arguments_of(message))
        return len(messages)


def arguments_of(message):
    html = [content for content, kind in getattr(message, "alternatives", []) if kind == "text/html"]
    plain = None if message.content_subtype == "html" else message.body
    if message.content_subtype == "html":
        html.insert(0, message.body)
    files = [{"name": name or "file", "content_type": kind or "application/octet-stream",
              "content": base64.b64encode(content.encode() if isinstance(content, str) else content).decode()}
             for name, content, kind in message.attachments]
    return [message.to, message.subject, plain, html[0] if html else None, message.cc or None, message.bcc or None,
            message.from_email, ", ".join(message.reply_to) or None,
            json.dumps(message.extra_headers) if message.extra_headers else None, json.dumps(files) if files else None]
