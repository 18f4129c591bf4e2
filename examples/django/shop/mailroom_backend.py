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
        """How many mailroom has taken: all or, with an error, none; with fail_silently those that can be mails."""
        if self.fail_silently:
            return sum(self.send(message) for message in messages)
        with transaction.atomic():
            return sum(self.send(message) for message in messages)

    def send(self, message):
        """Whether mailroom has taken it. A refusal leaves the transaction as it was."""
        if not message.recipients():
            return False
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
    body, is_html = str(message.body), message.content_subtype == "html"
    html = [body] if is_html else []
    for content, kind in getattr(message, "alternatives", []):
        if kind != "text/html" or html:
            raise ValueError(f"mailroom takes one text and one HTML, and no further alternative {kind}")
        html.append(str(content))
    headers = {name: str(value) for name, value in message.extra_headers.items()}
    return [message.to or None, str(message.subject), None if is_html else body, html[0] if html else None,
            message.cc or None, message.bcc or None, str(message.from_email), ", ".join(map(str, message.reply_to)) or None,
            json.dumps(headers) if headers else None,
            json.dumps([file_of(each) for each in message.attachments]) if message.attachments else None]


def file_of(attachment):
    if not isinstance(attachment, tuple):
        raise ValueError(f"mailroom takes files with name, content and type, and no {type(attachment).__name__}")
    name, content, kind = attachment
    if not isinstance(content, (str, bytes)):
        raise ValueError(f"mailroom takes no {type(content).__name__} as the content of a file")
    return {"name": name or "file", "content_type": kind or "application/octet-stream",
            "content": base64.b64encode(content.encode() if isinstance(content, str) else content).decode()}
