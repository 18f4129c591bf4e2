"""Reads messages with Python's parser and prints what it understood, a JSON object per line.

stdin: for each message its length in bytes, a newline, and the bytes.
"""

import email
import email.header
import email.policy
import email.utils
import json
import sys


def unfolded(value):
    return value.replace("\r\n", "").replace("\n", "")


def mailbox(value):
    """The name and address of a raw header; the name with its encoded words decoded."""
    if value is None:
        return None
    name, address = email.utils.parseaddr(unfolded(value))
    return [str(email.header.make_header(email.header.decode_header(name))), address]


def defects_of(message):
    found = []
    for part in message.walk():
        found += [type(defect).__name__ for defect in part.defects]
        for name, value in part.items():
            found += [name + " " + type(defect).__name__ for defect in value.defects]
    return found


def read(data):
    # Headers of SMTPUTF8 are UTF-8; all else is ASCII, which decodes to itself.
    text = data.decode("utf-8")
    message = email.message_from_string(text, policy=email.policy.SMTPUTF8)
    raw = email.message_from_string(text, policy=email.policy.compat32)
    parts = {part.get_content_type(): part.get_content() for part in message.walk() if not part.is_multipart()}
    return {
        "headers": raw.keys(),
        "subject": str(message["Subject"]),
        "date": message["Date"].datetime.isoformat(),
        "from": mailbox(raw["From"]),
        "to": mailbox(raw["To"]),
        "reply_to": mailbox(raw["Reply-To"]),
        "id": str(message["Message-ID"]),
        "extra": {name: str(value) for name, value in message.items() if name.startswith("X-")},
        "type": message.get_content_type(),
        "text": parts["text/plain"].replace("\r\n", "\n"),
        "html": parts["text/html"].replace("\r\n", "\n") if "text/html" in parts else None,
        "defects": defects_of(message),
    }


def main():
    stream = sys.stdin.buffer
    while size := stream.readline():
        json.dump(read(stream.read(int(size))), sys.stdout)
        sys.stdout.write("\n")


main()
