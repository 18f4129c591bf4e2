"""Makes every mail of Django a message of mailroom. What it does not take it refuses by name."""

import base64
import json

from django.core.mail.backends.base import BaseEmailBackend
from django.db import connection, transaction

SEND = (
    "SELECT mailroom.mailroom_send(%s::text[], subject => %s, text => %s, html => %s, cc => %s::text[],"
    " bcc => %s::text[], sender => %s, reply_to => %s, headers => %s, attachments => %s)"
)


class MailroomBackend(BaseEmailBackend):
    """Asks mailroom for each mail, in the transaction of the default database."""

    def send_messages(self, messages):
        return sum(self.send(message) for message in messages)

    def send(self, message):
        """Whether mailroom has taken it. A refusal leaves the transaction as it was."""
        try:
            values = arguments_of(message)
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute(SEND, values)
        except Exception:
            if not self.fail_silently:
                raise
            return False
        return True


def arguments_of(message):
    html = [message.body] if message.content_subtype == "html" else []
    for content, kind in getattr(message, "alternatives", []):
        if kind != "text/html" or html:
            raise ValueError(f"mailroom takes one text and one HTML, and no further alternative {kind}")
        html.append(content)
    return [message.to, message.subject, None if message.content_subtype == "html" else message.body, html[0] if html else None,
            message.cc or None, message.bcc or None, message.from_email, ", ".join(message.reply_to) or None,
            json.dumps(message.extra_headers) if message.extra_headers else None,
            json.dumps([file_of(each) for each in message.attachments]) if message.attachments else None]


def file_of(attachment):
    if not isinstance(attachment, tuple):
        raise ValueError(f"mailroom takes files with name, content and type, and no {type(attachment).__name__}")
    name, content, kind = attachment
    if not isinstance(content, (str, bytes)):
        raise ValueError(f"mailroom takes no {type(content).__name__} as the content of a file")
    return {"name": name or "file", "content_type": kind or "application/octet-stream",
            "content": base64.b64encode(content.encode() if isinstance(content, str) else content).decode()}
