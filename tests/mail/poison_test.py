#!/usr/bin/python3
"""poison_test.py MAILROOM: mails that a relay or a provider refuses for what they are, at the head of a queue, beside 150 that it takes.
Those must leave in less than 1.5 times the time that they take alone, and the others end as refused. A busy machine makes times of no use, so
what the server answers until the last of the 150 is counted, and no pause may be longer than a machine makes. Needs a PostgreSQL in PGHOST
and PGUSER.
"""

import base64
import email
import http.server
import json
import os
import socketserver
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.dont_write_bytecode = True
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'support'))
from own_database import OwnDatabase, run  # noqa: E402

MAILROOM = sys.argv[1]
DATABASE = OwnDatabase('poison_test')
GOOD, POISON, MANY = 150, 20, 300
LATENCY = 0.01  # seconds, of each mail or request
PATIENCE = 60
BAR = 1.5
PAUSE = 4  # seconds; a relay that is taken for unavailable is left alone for longer and longer


class Mail:
    """What a stand-in knows of a mail when it answers."""

    def __init__(self):
        self.sender = self.recipient = self.content = ''


class Relay(socketserver.ThreadingTCPServer):
    """An SMTP server. `refuse(step, mail)` returns a reply instead of the usual one, '' to close the connection, or None."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, refuse):
        self.refuse, self.taken, self.refused, self.lock = refuse, [], [], threading.Lock()
        super().__init__(('127.0.0.1', 0), Dialogue)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def settings(self):
        return {'MAILROOM_SEND_RELAY': f'smtp://127.0.0.1:{self.server_address[1]}'}


class Dialogue(socketserver.StreamRequestHandler):
    disable_nagle_algorithm = True

    def say(self, text):
        self.wfile.write(text.encode() + b'\r\n')

    def answer(self, step, mail, usual):
        """True if it is the usual one."""
        reply = self.server.refuse(step, mail)
        if reply is not None:
            with self.server.lock:
                self.server.refused.append(time.monotonic())
        if reply == '':
            raise ConnectionAbortedError
        self.say(reply or usual)
        if (reply or '').startswith('421'):
            raise ConnectionAbortedError
        return reply is None

    def handle(self):
        try:
            self.talk()
        except OSError:
            pass

    def talk(self):
        self.say('220 ready')
        mail = Mail()
        while line := self.rfile.readline().decode().rstrip():
            verb = line[:4].upper()
            if verb == 'MAIL':
                mail = Mail()
                mail.sender = line[line.index('<') + 1:line.index('>')]
                self.answer('mail', mail, '250 ok')
            elif verb == 'RCPT':
                mail.recipient = line[line.index('<') + 1:line.index('>')]
                self.answer('rcpt', mail, '250 ok')
            elif verb == 'DATA':
                if self.answer('data', mail, '354 go on'):
                    while (part := self.rfile.readline().decode()) != '.\r\n':
                        mail.content += part
                    time.sleep(LATENCY)
                    if self.answer('end', mail, '250 taken'):
                        with self.server.lock:
                            self.server.taken.append((time.monotonic(), mail.recipient))
            elif verb == 'QUIT':
                return self.say('221 bye')
            else:
                self.say('250 ok')
        return None


class Provider(http.server.ThreadingHTTPServer):
    """Takes mails as Amazon SES or Resend does. `refuse(step, mail)` returns (status, name, words), or None."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, kind, refuse):
        self.kind, self.refuse, self.taken, self.refused, self.lock = kind, refuse, [], [], threading.Lock()
        super().__init__(('127.0.0.1', 0), Posted)
        threading.Thread(target=self.serve_forever, daemon=True).start()
        self.directory = tempfile.TemporaryDirectory()
        self.key = os.path.join(self.directory.name, 'key')
        with open(os.open(self.key, os.O_WRONLY | os.O_CREAT, 0o600), 'w', encoding='ascii') as file:
            file.write('re_123456789\n' if kind == 'RESEND' else '[default]\naws_access_key_id = AKIAEXAMPLE\naws_secret_access_key = s\n')

    def settings(self):
        relay, key = ('resend://', 'KEY_FILE') if self.kind == 'RESEND' else ('ses://eu-west-1', 'CREDENTIALS_FILE')
        return {'MAILROOM_SEND_RELAY': relay, f'MAILROOM_SEND_{self.kind}_{key}': self.key,
                f'MAILROOM_SEND_{self.kind}_ENDPOINT': f'http://127.0.0.1:{self.server_address[1]}'}


class Posted(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def answer(self, status, value, **headers):
        body = json.dumps(value).encode()
        self.send_response(status)
        for name, text in {'Content-Length': str(len(body)), **headers}.items():
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(body)

    def mails_of(self, body):
        for each in body if isinstance(body, list) else [body]:
            mail = Mail()
            if self.server.kind == 'RESEND':
                mail.sender, mail.recipient, mail.content = each['from'], each['to'][0], json.dumps(each)
            else:
                mail.recipient = each['Destination']['ToAddresses'][0]
                mail.content = base64.b64decode(each['Content']['Raw']['Data']).decode()
                mail.sender = email.message_from_string(mail.content)['From']
            yield mail

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers['Content-Length'])))
        mails = list(self.mails_of(body))
        time.sleep(LATENCY)
        for mail in mails:
            if refusal := self.server.refuse('end', mail):
                with self.server.lock:
                    self.server.refused.append(time.monotonic())
                status, name, words = refusal
                return self.answer(status, {'message': words, 'name': name, 'statusCode': status}, **{'x-amzn-ErrorType': name})
        with self.server.lock:
            self.server.taken += [(time.monotonic(), mail.recipient) for mail in mails]
        return self.answer(200, {'data': [{'id': 'x'} for _ in mails]} if isinstance(body, list) else {'id': 'x', 'MessageId': 'x'})


def insert(count, address, **fields):
    if 'return_path' in fields:
        # Whole mails of programs that choose both senders.
        raw = f"E'From: {fields['author']}\\r\\nSubject: s\\r\\n\\r\\nt\\r\\n'"
        DATABASE.psql(f"SELECT count(*) FROM generate_series(1, {count}) n, mailroom_submit(ARRAY['{fields['return_path']}'], "
                      f"ARRAY[replace('{address}', '#', n::text)], ARRAY[convert_to({raw}, 'UTF8')])")
        return
    DATABASE.psql(f"""SELECT count(mailroom_send(ARRAY[replace('{address}', '#', n::text)], subject => 's', text => 't'
                  {''.join(f", {name} => {value}" for name, value in fields.items())})) FROM generate_series(1, {count}) n""")


UNVERIFIED = {'sender': "'no-reply@unverified.example'"}
MANY_UNVERIFIED = {'sender': "'no-reply@unverified' || n || '.example'"}
RAW_ENVELOPE = {'return_path': 'eve@unverified.example', 'author': 'no-reply@app.example'}
RAW_AUTHOR = {'return_path': 'no-reply@app.example', 'author': 'eve@unverified.example'}
RAW_NULL = {'return_path': '', 'author': 'no-reply@app.example'}
LINK = {'html': "'<a href=\"https://blocked.example/\">x</a>'"}
HEADER = {'headers': "'{\"X-Blocked\": \"blocked.example\"}'"}
FILE = {'attachments': "'[{\"name\": \"blocked.example.exe\", \"content_type\": \"application/x-msdownload\", \"content\": \"MQ==\"}]'"}


def at(step, reply, part, of='content'):
    """Refuses at `step` what has `part`."""
    return lambda now, mail: reply if now == step and part in getattr(mail, of) else None


def if_from(step, reply):
    return at(step, reply, '@unverified', 'sender')


def if_in(step, reply):
    return at(step, reply, 'blocked.example')


UNLUCKY = Mail()
UNLUCKY.recipient = 'p1@refused.example'
SMTP = {
    'a sender that MAIL refuses': (UNVERIFIED, if_from('mail', '550 5.7.1 Sender address rejected: not owned by user app')),
    'senders that MAIL refuses': (MANY_UNVERIFIED, if_from('mail', '550 5.7.1 not your domain')),
    'a sender that MAIL puts off': (UNVERIFIED, if_from('mail', '451 4.1.8 Domain of sender address does not resolve')),
    'a From that the end refuses':
        (UNVERIFIED, if_from('end', '554 Message rejected: Email address is not verified. The following identities failed the check')),
    'a sender of whom the end wants a login': (UNVERIFIED, if_from('end', '550 5.7.60 Client does not have permissions to send as this sender')),
    'an envelope sender of raw mails': (RAW_ENVELOPE, if_from('mail', '550 5.7.1 Sender address rejected: not owned by user app')),
    'an envelope sender of raw mails that is put off': (RAW_ENVELOPE, if_from('mail', '451 4.1.8 Domain of sender address does not resolve')),
    'a From of raw mails': (RAW_AUTHOR, at('end', '550 5.7.60 Client does not have permissions to send as this sender', 'From: eve@unverified')),
    'raw mails without a sender':
        (RAW_NULL, lambda now, mail: '550 5.7.1 Sender address is not allowed' if now == 'mail' and mail.sender == '' else None),
    'a link on a block list': (LINK, if_in('end', '554 5.7.1 Service unavailable; blocked using dbl.spamhaus.org')),
    'a link, in words that say nothing': (LINK, if_in('end', '550 5.7.1 message content rejected')),
    'a header': (HEADER, if_in('end', '554 5.7.1 rejected, your account has been reported')),
    'an attachment': (FILE, if_in('end', '552 5.7.0 this message was blocked because of its attachment')),
    'an attachment that closes the connection': (FILE, if_in('end', '')),
    'a link for which the relay closes with 421': (LINK, if_in('end', '421 4.7.0 try later, closing')),
    'a domain that is refused as the client is':
        ({}, at('data', '554 5.7.1 Client host rejected: Access denied', '@refused.example', 'recipient')),
    'a domain that wants fewer': ({}, at('rcpt', '450 4.7.1 too many mails from your network', '@refused.example', 'recipient')),
    'a domain with a rate': ({}, at('rcpt', '451 4.7.650 temporarily rate limited', '@refused.example', 'recipient')),
    'a domain with a rate that closes': ({}, at('rcpt', '421 4.7.0 too many messages, slow down', '@refused.example', 'recipient')),
}
NOT_VERIFIED = (400, 'MessageRejected', 'Email address is not verified. The following identities failed the check in region EU-WEST-1: x')
SES = {
    'a sender that is not verified': (UNVERIFIED, if_from('end', NOT_VERIFIED)),
    'senders that are not verified': (MANY_UNVERIFIED, if_from('end', NOT_VERIFIED)),
    'a sender that the policy forbids': (UNVERIFIED, if_from('end', (403, 'AccessDeniedException', 'not authorized to perform ses:SendEmail'))),
    'a domain without an MX': (UNVERIFIED, if_from('end', (400, 'MailFromDomainNotVerifiedException', 'no MX'))),
    'a link': (LINK, if_in('end', (400, 'MessageRejected', 'Transaction failed: message contains a link'))),
    'an attachment': (FILE, if_in('end', (400, 'BadRequestException', 'Illegal filename'))),
}
RESEND = {
    'a sender that is not verified':
        (UNVERIFIED, if_from('end', (403, 'validation_error', 'The unverified.example domain is not verified. Please, add and verify your domain'))),
    'senders that are not verified': (MANY_UNVERIFIED, if_from('end', (403, 'validation_error', 'The domain is not verified'))),
    'a sender in other words': (UNVERIFIED, if_from('end', (403, 'invalid_access', 'Access must be granted'))),
    'a link': (LINK, if_in('end', (422, 'validation_error', 'the mail has a link'))),
    'an attachment': (FILE, if_in('end', (422, 'invalid_attachment', 'Attachment type is not allowed'))),
}


OFTEN = ['an envelope sender of raw mails', 'raw mails without a sender', 'a sender that MAIL refuses', 'senders that MAIL refuses', 'a From that the end refuses', 'a link, in words that say nothing',
         'a domain with a rate', 'a sender that is not verified', 'senders that are not verified', 'a sender that the policy forbids']


class PoisonTest(unittest.TestCase):
    alone = {}

    def setUp(self):
        DATABASE.create(MAILROOM, MAILROOM_SECRET_KEY='ab' * 32, MAILROOM_SEND_FROM='no-reply@app.example', MAILROOM_SEND_RELAY='smtp://127.0.0.1:1')
        self.addCleanup(DATABASE.drop)

    def mail_all(self, server):
        """How long the good mails took; and starts a sender that runs until the end of the test."""
        began = time.monotonic()
        sender = subprocess.Popen([MAILROOM, 'send'], env={**os.environ, **server.settings()}, stderr=subprocess.DEVNULL)
        self.addCleanup(sender.wait)
        self.addCleanup(sender.terminate)
        while len(server.taken) < GOOD and time.monotonic() < began + 2 * PATIENCE:
            time.sleep(0.01)
        self.assertEqual(sorted(address for _, address in server.taken), sorted(f'u{n}@mail.example' for n in range(1, GOOD + 1)))
        return server.taken[-1][0] - began

    def baseline(self, name, make):
        if name not in self.alone:
            insert(GOOD, 'u#@mail.example')
            self.alone[name] = self.mail_all(make(lambda *_: None))
            self.doCleanups()
            self.setUp()
        return self.alone[name]

    def check(self, name, make, poison, refuse, count=POISON):
        alone = self.baseline(name, make)
        insert(count, 'p#@refused.example', **poison)
        insert(GOOD, 'u#@mail.example')
        server = make(refuse)
        took = self.mail_all(server)
        last = max(time for time, _ in server.taken)
        refused = [time for time in server.refused if time < last]
        heard = sorted(refused + [time for time, _ in server.taken])
        pause = max(after - before for before, after in zip(heard, heard[1:]))
        print(f'    {name}: {took:.2f} s, alone {alone:.2f} s, {len(refused)} refused, longest pause {pause:.2f} s', file=sys.stderr)
        self.assertLess(pause, PAUSE)
        if name == 'Resend':
            # In vain go a request of one sender and the one that he shared; of others one for each mail, and those that find it. Of MANY
            # all may go before the last good one, whose batch follows the one that ends the search: to split 100 refused mails takes 48.
            self.assertLessEqual(len(refused), 2 if poison is UNVERIFIED and count == POISON else 2 * POISON if count == POISON else MANY // 2)
        else:
            self.assertLess(GOOD + len(refused), BAR * GOOD)
        if count == MANY:
            return
        if refuse('rcpt', UNLUCKY):
            self.wait_for_domain()
        else:
            self.end()

    def wait_for_domain(self):
        """Only its mails wait, with the words of the relay, and status names it."""
        for _ in range(PATIENCE):
            found = subprocess.run([MAILROOM, 'status'], text=True, stdout=subprocess.PIPE, check=False).stdout
            if 'mails to refused.example' in found:
                break
            time.sleep(0.5)
        self.assertIn('mails to refused.example', found)
        self.assertEqual(DATABASE.psql("SELECT count(*) FROM mailroom_deliveries WHERE state = 'deferred'").strip(), str(POISON))
        self.assertEqual(DATABASE.psql('SELECT count(*) FROM mailroom_sinks WHERE failures > 0').strip(), '0')

    def states(self):
        return DATABASE.psql("SELECT state, count(*), min(attempts), bool_and(reply <> '') FROM mailroom_deliveries "
                             "WHERE address LIKE 'p%' AND state <> 'accepted' GROUP BY 1").split()

    def end(self):
        """They end by the policy, and stop nobody who comes later."""
        for _ in range(PATIENCE * 2):
            # It waits for no row: the sender locks them in another order.
            DATABASE.psql('UPDATE mailroom_deliveries d SET not_before = clock_timestamp() FROM (SELECT queue, token FROM mailroom_deliveries '
                          'WHERE not_before IS NOT NULL FOR UPDATE SKIP LOCKED) l WHERE (d.queue, d.token) = (l.queue, l.token)')
            states = self.states()
            if states[1:2] == [str(POISON)] and (states[0] != 'deferred' or int(states[2]) >= 3):
                break
            time.sleep(0.5)
        self.assertEqual(states[1:2] + states[3:4], [str(POISON), 't'], states)
        self.assertIn(states[0], ['rejected', 'deferred', 'unknown'])
        self.assertEqual(DATABASE.psql('SELECT count(*) FROM mailroom_sinks WHERE failures > 0').strip(), '0')


def add(protocol, make, kinds):
    for kind, (poison, refuse) in kinds.items():
        for count in [POISON, MANY] if kind in OFTEN else [POISON]:
            setattr(PoisonTest, f"test_{protocol} {'many, ' if count == MANY else ''}{kind}".replace(' ', '_').replace(',', ''),
                    lambda self, poison=poison, refuse=refuse, count=count: self.check(protocol, make, poison, refuse, count))


add('SMTP', Relay, SMTP)
add('SES', lambda refuse: Provider('SES', refuse), SES)
add('Resend', lambda refuse: Provider('RESEND', refuse), RESEND)

if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=2)
