"""Makes every mail of Django a message of mailroom, as it is."""

from email.utils import parseaddr

from django.core.mail.backends.base import BaseEmailBackend
from django.core.mail.message import sanitize_address
from django.db import connection, transaction

SUBMIT = "SELECT id FROM mailroom.mailroom_submit(%s::text[], %s, %s)"


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
            sender, *recipients = (address_of(each) for each in [message.from_email, *message.recipients()])
            # Of no host that a relay knows, such as root@localhost: mailroom has a sender of its own.
            path = sender if "." in sender.rpartition("@")[2] else None
            raw = message.message().as_bytes(linesep="\r\n")
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute(SUBMIT, [[path], ["\n".join(recipients)], [raw]])
        except Exception:
            if not self.fail_silently:
                raise
            return False
        return True


def address_of(mailbox):
    return parseaddr(sanitize_address(str(mailbox), "utf-8"))[1]
