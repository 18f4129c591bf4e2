"""Reads messages with Python's parser and prints what it understood, a JSON object per line.

stdin: for each message its length in bytes, a newline, and the bytes.
"""

import email
import email.header
import email.message
import email.policy
import email.utils
import functools
import gc
import hashlib
import json
import sys


class RememberingPolicy(email.policy.EmailPolicy):
    """Each look at a header parses it, which takes most of the time."""

    @functools.lru_cache(maxsize=256)
    def header_fetch_parse(self, name, value):
        return super().header_fetch_parse(name, value)


# As email.policy.SMTPUTF8.
POLICY = RememberingPolicy(linesep="\r\n", utf8=True)


def unfolded(value):
    return value.replace("\r\n", "").replace("\n", "")


def mailbox(value):
    """The name and address of a raw header; the name with its encoded words decoded."""
    if value is None:
        return None
    name, address = email.utils.parseaddr(unfolded(value))
    return [str(email.header.make_header(email.header.decode_header(name))), address]


def mailboxes(values):
    """The names and addresses of raw headers, their encoded words decoded."""
    return [
        [str(email.header.make_header(email.header.decode_header(name))), address]
        for name, address in email.utils.getaddresses([unfolded(value) for value in values])
        if address
    ]


def undecoded(message):
    """The headers of `message` as they are written, without a second parse of all of it."""
    raw = email.message.Message()
    for name, value in message.raw_items():
        raw.set_raw(name, value)
    return raw


def shape_of(part):
    if not part.is_multipart():
        return part.get_content_type()
    return part.get_content_subtype() + "(" + " ".join(shape_of(one) for one in part.iter_parts()) + ")"


def files_of(message):
    return [
        {
            "type": part.get_content_type(),
            "disposition": part.get_content_disposition(),
            # get_filename() drops blanks and angle brackets at its ends.
            "name": part["Content-Disposition"].params.get("filename", ""),
            "content_id": (part["Content-ID"] or "").strip().strip("<>"),
            "sha256": hashlib.sha256(part.get_payload(decode=True)).hexdigest(),
        }
        for part in message.walk()
        if part.get_content_disposition()
    ]


def body_of(message, kind):
    """What a mail program shows; None if there is no such part."""
    part = message.get_body((kind,))
    return None if part is None else part.get_content().replace("\r\n", "\n")


def defects_of(message):
    found = []
    for part in message.walk():
        found += [type(defect).__name__ for defect in part.defects]
        for name, value in part.items():
            found += [name + " " + type(defect).__name__ for defect in value.defects]
    return found


def read(data):
    # Headers of SMTPUTF8 are UTF-8; all else is ASCII, which decodes to itself.
    message = email.message_from_string(data.decode("utf-8"), policy=POLICY)
    raw = undecoded(message)
    return {
        "headers": raw.keys(),
        "subject": str(message["Subject"]),
        "date": message["Date"].datetime.isoformat(),
        "from": mailbox(raw["From"]),
        "to": mailbox(raw["To"]),
        "reply_to": mailbox(raw["Reply-To"]),
        "id": str(message["Message-ID"]),
        "recipients": [mailboxes(raw.get_all("To", [])), mailboxes(raw.get_all("Cc", []))],
        "extra": {name: str(value) for name, value in message.items() if name.startswith(("X-", "List-"))},
        "shape": shape_of(message),
        "files": files_of(message),
        "type": message.get_content_type(),
        "text": body_of(message, "plain"),
        "html": body_of(message, "html"),
        "defects": defects_of(message),
    }


def main():
    # To look for the cycles of some thousand messages takes longer than to keep them.
    gc.disable()
    stream = sys.stdin.buffer
    while size := stream.readline():
        print(json.dumps(read(stream.read(int(size)))))


main()
