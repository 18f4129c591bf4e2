#!/usr/bin/python3
"""check_maildir.py [--wait-for N] [--show N] MAILDIR: prints each mail of a maildir as a line of JSON, oldest first,
or with --show mail N (from 1, or from -1 for the newest) as its reader would see it.

Keys: message_id, date (UTC, ISO 8601), from, to, subject, text, html (null if absent), links (each once, those of the
text first), defects (what the parser found wrong, with null, absent or repeated headers), headers (all, in order),
envelope_from, envelope_to, queue_id (the server's). --wait-for waits up to 30 seconds until N mails are there. Exits
1 if they do not come or mail N does not exist.
"""

import argparse
import email
import email.policy
import html.parser
import json
import os
import re
import sys
import time
from datetime import timezone

TIME_LIMIT = 30  # seconds
ONCE = ('Date', 'From', 'To', 'Subject', 'Message-ID', 'MIME-Version')


def fail(message, hint):
    sys.exit(f'check_maildir: {message}\nhint: {hint}')


class Links(html.parser.HTMLParser):
    """Collects the targets of links, and the text between the tags."""

    def __init__(self, document):
        super().__init__()
        self.targets = []
        self.feed(document)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.targets += [value for name, value in attrs if name == 'href' and value]


def links_of(text, document):
    found = [link.rstrip('.,;:!?)\'"') for link in re.findall(r'https?://[^\s<>]+', text or '')]
    if document:
        found += Links(document).targets
    return list(dict.fromkeys(found))


def defects_of(message):
    defects = [f'{type(defect).__name__}: {defect}' for part in message.walk() for defect in part.defects]
    for part in message.walk():
        for name, value in part.items():
            defects += [f'{name}: {type(defect).__name__}: {defect}' for defect in value.defects]
    for name in ONCE:
        count = len(message.get_all(name, []))
        if count != 1:
            defects.append(f'{name}: {count} of these headers')
    return defects


def body(message, kind):
    part = message.get_body((kind,))
    return None if part is None else part.get_content()


def received(message, pattern):
    header = re.sub(r'\s+', ' ', str(message['Received'] or ''))
    match = re.search(pattern, header)
    return match and match[1]


def header(message, name):
    return None if message[name] is None else str(message[name])


def describe(message):
    text, document = body(message, 'plain'), body(message, 'html')
    date = message['Date'] and message['Date'].datetime
    return {
        'message_id': header(message, 'Message-ID'),
        'date': date and date.astimezone(timezone.utc).isoformat(),
        'from': header(message, 'From'),
        'to': header(message, 'To'),
        'subject': header(message, 'Subject'),
        'text': text,
        'html': document,
        'links': links_of(text, document),
        'defects': defects_of(message),
        'headers': [[name, str(value)] for name, value in message.items()],
        'envelope_from': (header(message, 'Return-Path') or '').strip().strip('<>'),
        'envelope_to': header(message, 'X-Original-To'),
        'queue_id': received(message, r' id (\w+)'),
    }


def show(message):
    """Prints what a mail program shows: headers decoded, the text, or the HTML where there is no text."""
    mail = describe(message)
    for name in ('From', 'To', 'Date', 'Subject'):
        print(f'{name + ":":<9}{header(message, name)}')
    print('\n' + (mail['text'] if mail['text'] is not None else mail['html'] or '').rstrip())


def paths_of(maildir):
    entries = [entry for name in ('new', 'cur') for entry in os.scandir(os.path.join(maildir, name))]
    return [entry.path for entry in sorted(entries, key=lambda entry: (entry.stat().st_mtime_ns, entry.name))]


def wait_for(maildir, count):
    deadline = time.monotonic() + TIME_LIMIT
    while len(paths_of(maildir)) < count:
        if time.monotonic() > deadline:
            fail(f'{len(paths_of(maildir))} of {count} mails came within {TIME_LIMIT} seconds',
                 'see the log of the mail server')
        time.sleep(0.02)


def read(path):
    with open(path, 'rb') as file:
        return email.message_from_binary_file(file, policy=email.policy.default)


def main():
    parser = argparse.ArgumentParser(usage='check_maildir.py [--wait-for N] [--show N] MAILDIR')
    parser.add_argument('--wait-for', type=int, default=0, metavar='N')
    parser.add_argument('--show', type=int, metavar='N')
    parser.add_argument('maildir')
    arguments = parser.parse_args()
    if not os.path.isdir(os.path.join(arguments.maildir, 'new')):
        fail(f'not a maildir: {arguments.maildir}',
             'with-postfix and with-mailbox name theirs in MAILROOM_TEST_MAILDIR')
    wait_for(arguments.maildir, arguments.wait_for)
    paths = paths_of(arguments.maildir)
    if arguments.show is None:
        for path in paths:
            print(json.dumps(describe(read(path)), ensure_ascii=False))
        return
    if not 1 <= abs(arguments.show) <= len(paths):
        fail(f'there is no mail {arguments.show}: the maildir holds {len(paths)}', 'mails count from 1')
    show(read(paths[arguments.show - 1 if arguments.show > 0 else arguments.show]))


if __name__ == '__main__':
    main()
