#!/usr/bin/python3
"""dialogue_test.py MAILROOM: the service over real sockets: what clients say and are told, logins that a PostgreSQL with SCRAM checks, clients
that are slow, many or malicious. What is stored is what was sent. Needs the PostgreSQL of with-postgres for itself.
"""

import base64
import contextlib
import json
import os
import re
import signal
import smtplib
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request
from concurrent.futures import ThreadPoolExecutor

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from submission_service import (MAILROOM, PATIENCE, Submission, ask_for_passwords, eventually, make_certificate, run)  # noqa: E402
from own_database import OwnDatabase  # noqa: E402

DATABASE = OwnDatabase('dialogue_test')
MAX_SIZE = 1024 * 1024
WITHIN = 2  # submission.timeout
CONFIG = """
submission:
  timeout: 2s
  patience: 3s
  max_size: 1MB
  connections: 1100
  connections_per_address: 1100
  local_to: ops@shop.example
  local_from: no-reply@shop.example
  roles:
    limited:
      connections: 1
      senders: ['@shop.example']
      header_options: false
      return_path: keep
"""
HEADER = b'From: a@shop.example\r\nDate: Sat, 28 Nov 2026 12:00:00 +0000\r\nMessage-ID: <1@shop.example>\r\n'
ENVELOPE = b'EHLO me\r\nMAIL FROM:<a@shop.example>\r\nRCPT TO:<ada@mail.example>\r\n'
EVIL = b'MAIL FROM:<eve@evil.example>\r\nRCPT TO:<bob@mail.example>\r\nDATA\r\n' + HEADER + b'\r\nsecond\r\n.\r\n'

# What is said at once to a door without a login, and the codes of all replies; `end`: the service has closed.
DIALOGUES = [
    ('pipelining', ENVELOPE + b'DATA\r\n', HEADER + b'\r\n..x\r\n.\r\nNOOP\r\nQUIT\r\n', '220 250 250 250 354 250 250 221 end'),
    ('two mails', ENVELOPE + b'DATA\r\n' + HEADER + b'\r\nx\r\n.\r\n' + ENVELOPE[9:], b'DATA\r\n' + HEADER + b'\r\ny\r\n.\r\nQUIT\r\n',
     '220 250 250 250 354 250 250 250 354 250 221 end'),
    ('chunks', ENVELOPE + b'BDAT %d\r\n' % len(HEADER) + HEADER, b'BDAT 5 LAST\r\n\r\nx\r\nQUIT\r\n', '220 250 250 250 250 250 221 end'),
    ('a chunk that is refused is eaten', b'EHLO me\r\nBDAT 27 LAST\r\n', b'MAIL FROM:<eve@x.example>\r\nNOOP\r\nQUIT\r\n',
     '220 250 503 250 221 end'),
    ('a chunk of 2^64', ENVELOPE, b'BDAT 18446744073709551615\r\nx\r\nNOOP\r\n', '220 250 250 250 552 end'),
    ('bare LF in a chunk', ENVELOPE, b'BDAT 27 LAST\r\nFrom: a@shop.example\n\nxxxx\nQUIT\r\n', '220 250 250 250 554 end'),
    ('bare LF in a command', b'EHLO me\r\n', b'NOOP\nNOOP\r\n', '220 250 500 end'),
    ('NUL', ENVELOPE + b'DATA\r\n', HEADER + b'\r\n\0\r\n.\r\nQUIT\r\n', '220 250 250 250 354 554 221 end'),
    ('a size that is too large', b'EHLO me\r\n', b'MAIL FROM:<a@shop.example> SIZE=1048577\r\nQUIT\r\n', '220 250 552 221 end'),
    ('a web page', b'', b'POST / HTTP/1.1\r\nHost: localhost\r\n\r\n' + EVIL, '220 421 end'),
    ('no address, and one without a domain', b'EHLO me\r\nMAIL FROM:<root>\r\n', b'RCPT TO:<>\r\nRCPT TO:<root@web1>\r\nQUIT\r\n',
     '220 250 250 501 250 221 end'),
    ('STARTTLS where nobody logs in', b'EHLO me\r\n', b'STARTTLS\r\nAUTH PLAIN AHdlYgByaWdodA==\r\nQUIT\r\n', '220 250 503 502 221 end'),
    ('errors without end', b'', b'x\r\n' * 50, '220 ' + '500 ' * 10 + '421 end'),
    ('commands without end', b'', b'NOOP\r\n' * 200, '220 ' + '250 ' * 100 + '421 end'),
]
# Ends of a mail for one server or another, and no end for RFC 5321.
ENDS = [b'\n.\n', b'\n.\r\n', b'\r.\r', b'\r.\r\n', b'\r\n.\n', b'\r\n.\r', b'\r\r\n.\r\n', b'\r\n.\r\r\n', b'\n\n.\r\n', b'\r\n\0.\r\n', b'\r\n. \r\n',
        b'\r\n..\r\n']
# User, password, the mechanism, and the reply.
LOGINS = [
    ('web', 'right', 'PLAIN', 235), ('web', 'right', 'LOGIN', 235), ('web', 'wrong', 'PLAIN', 535), ('web', 'wrong', 'LOGIN', 535),
    ('nobody', 'right', 'PLAIN', 535),  # of no group
    ('boss', 'right', 'PLAIN', 535),  # a superuser
    ('ghost', 'right', 'PLAIN', 535),  # no role
    ('open', 'right', 'PLAIN', 454),  # whom pg_hba.conf asks for no password
    ('full', 'right', 'PLAIN', 454),  # has no connection left
]


def read(path):
    with open(path, encoding='ascii') as file:
        return file.read()


def write(path, text):
    with open(path, 'w', encoding='ascii') as file:
        file.write(text)


def trusting(certificate):
    context = ssl.create_default_context(cafile=certificate)
    context.check_hostname = False
    return context


class Wire:
    """A connection of bytes, until the end of the test."""

    open = []

    def __init__(self, port, context=None, address='127.0.0.1'):
        self.socket = socket.create_connection(('127.0.0.1', port), PATIENCE, (address, 0))
        if context:
            self.socket = context.wrap_socket(self.socket)
        self.heard = b''
        Wire.open.append(self)

    def say(self, text):
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            self.socket.sendall(text)

    def hears(self, count):
        """Until so many replies are there, or the end."""
        while len(self.codes().split()) < count and self._read():
            pass
        return self.codes()

    def end(self):
        """All codes, until the service closes."""
        while self._read():
            pass
        return self.codes() + ' end'

    def _read(self):
        try:
            more = self.socket.recv(65536)
        except ConnectionResetError:
            self.heard += b'\r\nreset -\r\n'
            return False
        self.heard += more
        return more != b''

    def codes(self):
        return ' '.join(line[:3].decode() for line in self.heard.split(b'\r\n')[:-1] if line[3:4] == b' ')

    def close(self):
        self.socket.close()
        Wire.open.remove(self)


class DialogueTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        DATABASE.create(MAILROOM)
        run(MAILROOM, 'init', '--roles')
        DATABASE.psql("CREATE ROLE shop LOGIN IN ROLE mailroom_submitter; CREATE ROLE limited LOGIN PASSWORD 'right' IN ROLE mailroom_submitter;"
                      "CREATE ROLE web LOGIN PASSWORD 'right' IN ROLE mailroom_submitter; CREATE ROLE nobody LOGIN PASSWORD 'right';"
                      "CREATE ROLE boss SUPERUSER LOGIN PASSWORD 'right'; CREATE ROLE open LOGIN PASSWORD 'right' IN ROLE mailroom_submitter;"
                      "CREATE ROLE full LOGIN PASSWORD 'right' CONNECTION LIMIT 0 IN ROLE mailroom_submitter")
        ask_for_passwords(DATABASE, 'shop,open')
        cls.key, cls.certificate = make_certificate(cls.directory.name, 'localhost')
        cls.tls = trusting(cls.certificate)
        cls.config = f'{cls.directory.name}/mailroom.yaml'
        write(cls.config, CONFIG)
        run('createdb', '-T', DATABASE.name, f'{DATABASE.name}_copy')
        cls.service = Submission(['127.0.0.1:0', 'smtps://127.0.0.1:0', '127.0.0.1:0=shop'], MAILROOM_CONFIG=cls.config, MAILROOM_METRICS_LISTEN='127.0.0.1:0',
                                 MAILROOM_SUBMISSION_CERTIFICATE=cls.certificate, MAILROOM_SUBMISSION_KEY=cls.key)
        cls.login_port, cls.tls_port, cls.shop_port = cls.service.ports
        # It looks whether it may every few seconds, during which the other tests go on.
        cls.copy_service = Submission(['127.0.0.1:0=shop'], MAILROOM_CONFIG=cls.config, MAILROOM_DATABASE_URL=f'dbname={DATABASE.name}_copy')
        wire = Wire(cls.copy_service.ports[0])
        wire.end()
        cls.copy_said = wire.heard
        run(MAILROOM, 'adopt', '--yes', '--database-url', f'dbname={DATABASE.name}_copy')

    @classmethod
    def tearDownClass(cls):
        for service in (cls.service, cls.copy_service):
            code = service.stop()
            assert code == 0, (code, service.lines)
        run('dropdb', f'{DATABASE.name}_copy')
        DATABASE.drop()
        cls.directory.cleanup()

    def rows(self):
        """Role, envelope and bytes of all that is stored, and nothing is stored any more."""
        rows = DATABASE.psql("WITH gone AS (DELETE FROM mailroom_messages RETURNING *) SELECT enqueued_by, return_path, "
                             "array_to_string(recipients, ' '), encode(raw, 'hex') FROM gone ORDER BY id")
        return [(role, sender, to, bytes.fromhex(raw)) for role, sender, to, raw in (row.split('\t') for row in rows.splitlines())]

    def setUp(self):
        DATABASE.psql('DELETE FROM mailroom_messages')

    def tearDown(self):
        for wire in list(Wire.open):
            wire.close()

    def test_what_is_said_is_told(self):
        for name, first, second, codes in DIALOGUES:
            for pieces in ((first + second,), (first, second), re.findall(b'(?s).{1,7}', first + second)):
                with self.subTest(name, pieces=len(pieces)):
                    wire = Wire(self.shop_port)
                    for piece in pieces:
                        wire.say(piece)
                    self.assertEqual(wire.end(), codes, wire.heard)
                    wire.close()

    def test_no_end_of_a_mail_but_that_of_the_rfc(self):
        for end in ENDS:
            with self.subTest(end=end):
                DATABASE.psql('DELETE FROM mailroom_messages')
                wire = Wire(self.shop_port)
                wire.say(ENVELOPE + b'DATA\r\n')
                wire.hears(5)
                wire.say(HEADER + b'\r\nfirst' + end + EVIL + b'QUIT\r\n')
                wire.end()
                rows = self.rows()
                self.assertLessEqual(len(rows), 1)
                for role, sender, to, raw in rows:
                    self.assertEqual((role, sender, to), ('shop', 'a@shop.example', 'ada@mail.example'))
                    self.assertIn(b'second', raw)
                if not rows:
                    self.assertIn(' 554', wire.codes())

    def test_logins(self):
        """Each from an address of its own: whoever has guessed waits, and nobody else."""
        def log_in(place, login, is_secure):
            user, password, mechanism, code = login
            port, client, options = ((self.tls_port, smtplib.SMTP_SSL, {'context': self.tls}) if is_secure else
                                     (self.login_port, smtplib.SMTP, {}))
            with client('127.0.0.1', port, timeout=PATIENCE, source_address=(f'127.0.1.{place}', 0), **options) as session:
                session.ehlo()
                if not is_secure:
                    self.assertFalse(session.has_extn('auth'))
                    self.assertEqual(session.docmd('AUTH', 'PLAIN ' + base64.b64encode(b'\0web\0right').decode())[0], 538)
                    self.assertEqual(session.mail('a@shop.example')[0], 530)
                    session.starttls(context=self.tls)
                    session.ehlo()
                session.user, session.password = user, password
                try:
                    told = session.auth(mechanism, getattr(session, f'auth_{mechanism.lower()}'))[0]
                except smtplib.SMTPAuthenticationError as error:
                    told = error.smtp_code
                self.assertEqual(told, code, login)
                self.assertEqual(session.mail('a@shop.example')[0], 250 if code == 235 else 530, login)
        with ThreadPoolExecutor(20) as pool:
            for each in [pool.submit(log_in, 2 * i + is_secure, login, is_secure) for i, login in enumerate(LOGINS, 1)
                         for is_secure in (False, True)]:
                each.result()
        self.assertTrue(self.service.said('refused a login'))

    def test_guesses_of_an_address_end(self):
        wires = [Wire(self.tls_port, self.tls, '127.0.0.9') for _ in range(11)]
        for wire in wires:
            wire.say(b'EHLO me\r\nAUTH PLAIN ' + base64.b64encode(b'\0ghost\0x') + b'\r\n')
        self.assertEqual(sorted(wire.hears(3) for wire in wires), ['220 250 421'] + 10 * ['220 250 535'])

    def test_commands_behind_starttls_are_not_taken(self):
        wire = Wire(self.login_port)
        wire.say(b'EHLO me\r\nSTARTTLS\r\n' + EVIL)
        self.assertEqual(wire.end(), '220 250 554 end')
        self.assertEqual(self.rows(), [])

    def test_bytes_are_stored_as_they_come(self):
        mails = [b'\r\n.\r\n..\r\n.x\r\n', b'\r\n' + b'long ' * 3000 + b'\r\n', 'Subject: Grüße\r\n\r\nZwölf\r\n'.encode(), b'Subject: \xff\xfe\r\n\r\n\x80\r\n',
                 b'\r\n' + b'\r\n' * 1000, b'\r\n' + os.urandom(300_000).replace(b'\0', b'x').replace(b'\r', b'y').replace(b'\n', b'z') + b'\r\n']
        for rest in mails:
            mail = HEADER + rest
            with self.subTest(size=len(mail)):
                with smtplib.SMTP('127.0.0.1', self.shop_port, timeout=PATIENCE) as session:
                    session.ehlo()
                    self.assertEqual(session.docmd('MAIL', 'FROM:<a@shop.example> BODY=8BITMIME SMTPUTF8')[0], 250)
                    session.send('RCPT TO:<zoë@mail.example>\r\n'.encode())
                    self.assertEqual(session.getreply()[0], 250)
                    code, text = session.data(mail)
                    self.assertEqual(code, 250)
                    self.assertRegex(text.decode(), r'^2\.0\.0 Ok: queued as message:\d+$')
                    session.send(b'MAIL FROM:<a@shop.example>\r\nRCPT TO:<bob@mail.example>\r\nBDAT %d LAST\r\n' % len(mail) + mail)
                    self.assertEqual([session.getreply()[0] for _ in range(3)], [250, 250, 250])
                first, second = self.rows()
                self.assertEqual((first[2], second[2]), ('zoë@mail.example', 'bob@mail.example'))
                for _, _, _, raw in (first, second):
                    self.assertTrue(raw.endswith(b'\r\n' + mail), raw[:400])
                    self.assertEqual(raw.count(b'\r\n', 0, len(raw) - len(mail)), 3)  # of Received

    def test_a_mail_that_comes_again_is_stored_once(self):
        wire = Wire(self.shop_port)
        mail = b'MAIL FROM:<a@shop.example>\r\nRCPT TO:<ada@mail.example>\r\nDATA\r\n' + HEADER + b'\r\nx\r\n.\r\n'
        wire.say(b'EHLO me\r\n' + 3 * mail + mail.replace(b'ada', b'bob') + b'QUIT\r\n')
        wire.end()
        ids = re.findall(rb'queued as message:(\d+)', wire.heard)
        self.assertEqual((len(ids), len(set(ids[:3])), ids[3] in ids[:3]), (4, 1, False), wire.heard)
        self.assertEqual([to for _, _, to, _ in self.rows()], ['ada@mail.example', 'bob@mail.example'])

    def test_who_has_said_quit_counts_no_more(self):
        service = Submission(['127.0.0.1:0=shop'], MAILROOM_SUBMISSION_CONNECTIONS_PER_ADDRESS='2')
        try:
            wires = [Wire(service.ports[0]) for _ in range(2)]
            for wire in wires:
                wire.hears(1)
            self.assertEqual(Wire(service.ports[0]).end(), '421 end')
            for wire in wires:
                wire.say(b'QUIT\r\n')
                self.assertEqual(wire.hears(2), '220 221')  # and it has not closed yet
            self.assertEqual([Wire(service.ports[0]).hears(1) for _ in range(3)], ['220', '220', '421'])
        finally:
            self.assertEqual(service.stop(), 0)

    def test_slow_clients_end_and_hold_up_nobody(self):
        slow = {'greeting': b'', 'command': b'EHLO m', 'login': b'EHLO me\r\nAUTH PLAIN\r\n', 'data': ENVELOPE + b'DATA\r\nFrom: ',
                'chunk': ENVELOPE + b'BDAT 1000\r\nFrom:'}
        wires = {}
        for name, said in slow.items():
            wires[name] = Wire(self.tls_port, self.tls) if name == 'login' else Wire(self.shop_port)
            wires[name].say(said)
        handshake = Wire(self.tls_port)
        handshake.say(b'\x16\x03\x01')
        began = time.monotonic()
        while time.monotonic() < began + WITHIN / 2:
            for wire in wires.values():
                wire.say(b'x')  # slowly, but each second
            quick = Wire(self.shop_port)
            quick.say(b'EHLO me\r\nQUIT\r\n')
            self.assertEqual(quick.end(), '220 250 221 end')
            time.sleep(0.2)
        for name, wire in wires.items():
            with self.subTest(name):
                self.assertTrue(wire.end().endswith('421 end'), wire.heard)
        self.assertEqual(handshake.end(), ' end')
        self.assertLess(time.monotonic() - began, WITHIN + 10)
        self.assertEqual(self.rows(), [])

    def test_a_line_and_a_mail_without_end_take_no_memory(self):
        before = self.memory()
        for said, codes in ((b'', '220 500 end'), (ENVELOPE + b'DATA\r\n', '220 250 250 250 354 552 end')):
            wire = Wire(self.shop_port)
            wire.say(said)
            wire.socket.setblocking(False)
            sent = 0
            # As much as the service and the kernel take; the reply is there when nothing more goes.
            while sent < 64 * MAX_SIZE:
                try:
                    sent += wire.socket.send(b'x' * 65536)
                except BlockingIOError:
                    wire.socket.setblocking(True)
                    wire.socket.settimeout(PATIENCE)
                    if wire._read() is False or wire.codes().endswith(codes.split()[-2]):
                        break
                    wire.socket.setblocking(False)
                except ConnectionError:
                    break
            wire.socket.setblocking(True)
            wire.socket.settimeout(PATIENCE)
            self.assertTrue(wire.end().startswith(codes[:-4]), wire.codes())
        self.assertLess(self.memory() - before, 16 * 1024)

    def memory(self, service=None, name='VmRSS'):
        """In kB."""
        with open(f'/proc/{(service or self.service).process.pid}/status', encoding='ascii') as file:
            return int(re.search(rf'{name}:\s+(\d+)', file.read()).group(1))

    def test_a_thousand_idle_sessions_over_tls(self):
        before = self.memory()
        wires = []
        for _ in range(1000):
            wires.append(Wire(self.tls_port, self.tls))
        for wire in wires:
            wire.hears(1)
        grown = self.memory() - before
        for wire in wires:
            wire.close()
        self.assertLess(grown, 20 * 1024)  # kB

    def test_terms_of_a_role(self):
        with smtplib.SMTP_SSL('127.0.0.1', self.tls_port, timeout=PATIENCE, context=self.tls) as session:
            session.login('limited', 'right')
            self.assertEqual(session.mail('eve@evil.example')[:1], (550,))
            mail = HEADER + b'X-Mailroom-Key: k\r\nX-Mailroom-Nonsense: 1\r\n\r\nx\r\n'
            self.assertEqual(session.sendmail('a@shop.example', 'ada@mail.example', mail), {})
            with self.assertRaises(smtplib.SMTPDataError) as caught:
                session.sendmail('a@shop.example', 'ada@mail.example', mail.replace(b'a@shop', b'a@evil'))
            self.assertEqual(caught.exception.smtp_code, 550)
            other = Wire(self.tls_port, self.tls)
            other.say(b'EHLO me\r\nAUTH PLAIN ' + base64.b64encode(b'\0limited\0right') + b'\r\n')
            self.assertEqual(other.end(), '220 250 421 end')
        self.assertEqual(DATABASE.psql("SELECT options->>'keep_return_path' FROM mailroom_messages").strip(), 'true')
        rows = self.rows()
        self.assertEqual([row[:3] for row in rows], [('limited', 'a@shop.example', 'ada@mail.example')])
        self.assertNotIn(b'X-Mailroom', rows[0][3])

    def test_a_role_without_the_right_mails_no_more(self):
        DATABASE.psql("CREATE ROLE fired LOGIN PASSWORD 'right' IN ROLE mailroom_submitter")
        with smtplib.SMTP_SSL('127.0.0.1', self.tls_port, timeout=PATIENCE, context=self.tls) as session:
            session.login('fired', 'right')
            session.sendmail('a@shop.example', 'ada@mail.example', HEADER + b'\r\nbefore\r\n')
            DATABASE.psql('REVOKE mailroom_submitter FROM fired')
            with self.assertRaises(smtplib.SMTPDataError) as caught:
                session.sendmail('a@shop.example', 'ada@mail.example', HEADER + b'\r\nafter\r\n')
            self.assertEqual((caught.exception.smtp_code, caught.exception.smtp_error[:5]), (550, b'5.7.1'))
            DATABASE.psql('GRANT mailroom_submitter TO fired')
            session.sendmail('a@shop.example', 'ada@mail.example', HEADER + b'\r\nagain\r\n')
        self.assertEqual([raw.split()[-1] for _, _, _, raw in self.rows()], [b'before', b'again'])

    def test_a_role_over_its_limit_is_told_to_come_back(self):
        DATABASE.psql("CREATE ROLE eager LOGIN PASSWORD 'right' IN ROLE mailroom_submitter")
        run(MAILROOM, 'message', 'roles', '--limit', 'eager=2/h')
        with smtplib.SMTP_SSL('127.0.0.1', self.tls_port, timeout=PATIENCE, context=self.tls) as session:
            session.login('eager', 'right')
            for mail in (b'one', b'two'):
                session.sendmail('a@shop.example', 'ada@mail.example', HEADER + b'\r\n' + mail + b'\r\n')
            with self.assertRaises(smtplib.SMTPDataError) as caught:
                session.sendmail('a@shop.example', 'ada@mail.example', HEADER + b'\r\nthree\r\n')
            self.assertEqual((caught.exception.smtp_code, caught.exception.smtp_error[:5]), (451, b'4.7.1'))
            self.assertIn(b'2 in 01:00:00', caught.exception.smtp_error)
            self.assertEqual(session.mail('a@shop.example')[0], 451)  # without the mail
            # A mail that never fits is not to come again.
            session.rset()
            time.sleep(1.1)
            with self.assertRaises(smtplib.SMTPDataError) as caught:
                session.sendmail('a@shop.example', [f'{name}@mail.example' for name in 'abc'], HEADER + b'\r\nfour\r\n')
            self.assertEqual(caught.exception.smtp_code, 554)
            run(MAILROOM, 'message', 'roles', '--limit', 'eager=none')
            session.sendmail('a@shop.example', 'ada@mail.example', HEADER + b'\r\nfive\r\n')
        self.assertEqual([raw.split()[-1] for _, _, _, raw in self.rows()], [b'one', b'two', b'five'])

    def test_what_the_database_refuses_is_refused_alone(self):
        wires = [Wire(self.shop_port) for _ in range(6)]
        for i, wire in enumerate(wires):
            option = b'X-Mailroom-Action: nonsense\r\n' if i == 3 else b''
            wire.say(ENVELOPE + b'DATA\r\n' + HEADER.replace(b'<1@', b'<%d@' % i) + option + b'\r\nx\r\n.\r\nQUIT\r\n')
        codes = [wire.end() for wire in wires]
        self.assertEqual([code.split()[-3] for code in codes], ['250', '250', '250', '554', '250', '250'], wires[3].heard)
        self.assertEqual(len(self.rows()), 5)

    def test_a_table_that_is_locked_delays_and_then_refuses(self):
        with smtplib.SMTP('127.0.0.1', self.shop_port, timeout=PATIENCE) as session:
            session.sendmail('a@shop.example', 'ada@mail.example', HEADER + b'\r\nbefore\r\n')
            with self.locked():
                began = time.monotonic()
                with self.assertRaises(smtplib.SMTPDataError) as caught:
                    session.sendmail('a@shop.example', 'ada@mail.example', HEADER + b'\r\nmeanwhile\r\n')
                self.assertEqual((caught.exception.smtp_code, caught.exception.smtp_error[:5]), (451, b'4.3.0'))
                self.assertLess(time.monotonic() - began, 3 + 5)
            session.sendmail('a@shop.example', 'ada@mail.example', HEADER + b'\r\nafter\r\n')
        self.assertEqual([raw.split()[-1] for _, _, _, raw in self.rows()], [b'before', b'after'])

    def test_the_copy_takes_mails_since_it_was_adopted(self):
        self.assertIn(b'421 4.3.5 this database is a copy of another', self.copy_said)
        self.assertTrue(eventually(lambda: Wire(self.copy_service.ports[0]).hears(1) == '220'))
        self.assertTrue(self.copy_service.said('takes mails again'))

    def test_sighup_takes_another_certificate(self):
        other_key, other = make_certificate(self.directory.name, 'other')
        before = [(path, read(path)) for path in (self.certificate, self.key)]
        try:
            for path, source in ((self.certificate, other), (self.key, other_key)):
                write(path, read(source))
            self.reload()
            wire = Wire(self.tls_port, trusting(other))
            self.assertEqual(wire.hears(1), '220')
            write(self.key, 'nonsense')
            self.service.process.send_signal(signal.SIGHUP)
            self.assertTrue(eventually(lambda: self.service.said('goes on with the configuration before')), self.service.lines)
            self.assertEqual(Wire(self.tls_port, trusting(other)).hears(1), '220')
        finally:
            for path, text in before:
                write(path, text)
            self.reload()

    def test_sockets_of_systemd_outlive_the_service(self):
        with socket.create_server(('127.0.0.1', 0)) as passed:
            port = passed.getsockname()[1]
            for name, environment, codes in (('login', {}, '220 250 530 221 end'),
                                             ('role', {'MAILROOM_SUBMISSION_LISTEN': f'127.0.0.1:{port}=shop'}, '220 250 250 221 end')):
                with self.subTest(name):
                    # It waits in the backlog for a service that is about to start.
                    wire = Wire(port)
                    wire.say(b'EHLO me\r\nMAIL FROM:<a@shop.example>\r\nQUIT\r\n')
                    service = subprocess.Popen(
                        ['bash', '-c', 'exec 3<&0 </dev/null; LISTEN_PID=$$ LISTEN_FDS=1 exec "$0" submission', MAILROOM], stdin=passed,
                        stderr=subprocess.DEVNULL, env=dict(os.environ, MAILROOM_SUBMISSION_CERTIFICATE=self.certificate,
                                                            MAILROOM_SUBMISSION_KEY=self.key, **environment))
                    self.assertEqual(wire.end(), codes)
                    service.terminate()
                    self.assertEqual(service.wait(PATIENCE), 0)

    def test_doctor_looks_at_logins_addresses_the_certificate_and_a_mail(self):
        def findings(**environment):
            done = subprocess.run([MAILROOM, 'doctor', '-o', 'json'], stdout=subprocess.PIPE, text=True, check=False, env=dict(
                os.environ, MAILROOM_CONFIG=self.config, MAILROOM_SUBMISSION_CERTIFICATE=self.certificate, MAILROOM_SUBMISSION_KEY=self.key,
                MAILROOM_SUBMISSION_LISTEN=f'127.0.0.1:{self.login_port},smtps://127.0.0.1:{self.tls_port}', **environment))
            return [(each['verdict'], each['reason']) for each in json.loads(done.stdout)['checks'] if each['name'] == 'submission']
        DATABASE.psql('ALTER ROLE limited SET synchronous_commit = off')
        found = findings()
        DATABASE.psql('ALTER ROLE limited RESET synchronous_commit')
        # with-postgres --fast has neither.
        self.assertEqual([verdict for verdict, _ in found], ['warning', 'ok', 'ok', 'failure', 'ok', 'failure', 'failure', 'failure', 'warning'],
                         found)
        self.assertEqual([reason.split(':')[0] for _, reason in found[5:8]],
                         ['fsync is off', 'full_page_writes is off', 'synchronous_commit is off for limited'])
        self.assertIn('the certificate is valid until', found[0][1])  # for 3 days
        self.assertEqual(found[3][1], 'any password is right for open, shop')
        self.assertIn('a mail was stored, and taken back', found[4][1])
        self.assertIn('send.bounce_address', found[8][1])
        self.assertEqual(self.rows(), [])

    def test_init_makes_what_a_login_needs(self):
        home = f'{self.directory.name}/home'
        os.mkdir(home)

        def init():
            return subprocess.run([MAILROOM, 'init', '--submission', '--yes', '--directory', home], capture_output=True, text=True, check=False)
        self.assertEqual(init().returncode, 3)
        write(f'{home}/mailroom.yaml', 'collect:\n  queue: shop\n')
        self.assertEqual(init().returncode, 0)
        made = {name: read(f'{home}/{name}') for name in os.listdir(home)}
        self.assertEqual(sorted(made), ['mailroom.yaml', 'smtp.crt', 'smtp.key'])
        self.assertEqual(os.stat(f'{home}/smtp.key').st_mode & 0o777, 0o600)
        again = init()
        self.assertEqual((again.returncode, 'submission.listen already' in again.stderr), (3, True), again.stderr)
        self.assertEqual({name: read(f'{home}/{name}') for name in os.listdir(home)}, made)
        service = Submission(['127.0.0.1:0'], MAILROOM_CONFIG=f'{home}/mailroom.yaml')
        with smtplib.SMTP('localhost', service.ports[0], timeout=PATIENCE) as session:
            session.starttls(context=ssl.create_default_context(cafile=f'{home}/smtp.crt'))
            session.login('web', 'right')
        self.assertEqual(service.stop(), 0)

    def page(self, name):
        at = next(line['at'] for line in self.service.lines if line.get('message') == 'serving metrics')
        return f'http://{at}/{name}'

    def metric(self, name):
        with urllib.request.urlopen(self.page('metrics')) as page:
            return float((re.search(f'^{re.escape(name)} (.*)$', page.read().decode(), re.MULTILINE) or [0, 0])[1])

    @contextlib.contextmanager
    def locked(self):
        """No message is stored meanwhile."""
        lock = subprocess.Popen(['psql', '-XAtq', '-d', DATABASE.name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        lock.stdin.write("BEGIN; LOCK mailroom_messages; SELECT 'locked';\n")
        lock.stdin.flush()
        self.assertEqual(lock.stdout.readline(), 'locked\n')
        try:
            yield
        finally:
            lock.communicate('COMMIT;\n')

    def test_a_mail_is_held_in_few_copies(self):
        mail = 8_000_000
        service = Submission(['127.0.0.1:0=shop'], MAILROOM_CONFIG=self.config, MAILROOM_SUBMISSION_MAX_SIZE='9MB')
        try:
            with smtplib.SMTP('127.0.0.1', service.ports[0], timeout=PATIENCE) as session:
                session.sendmail('a@shop.example', 'ada@mail.example', HEADER + b'\r\nsmall\r\n')
                before = self.memory(service, 'VmHWM')
                session.sendmail('a@shop.example', 'ada@mail.example', HEADER + b'\r\n' + (b'x' * 998 + b'\r\n') * (mail // 1000))
            self.assertLess((self.memory(service, 'VmHWM') - before) * 1024 / mail, 3.5)
        finally:
            service.stop()

    def test_clients_share_a_commit(self):
        next_transaction = 'SELECT pg_snapshot_xmax(pg_current_snapshot())'
        transactions = int(DATABASE.psql(next_transaction))
        before = self.metric('mailroom_submission_commits_total')
        with self.locked():
            wires = [Wire(self.shop_port) for _ in range(64)]
            for i, wire in enumerate(wires):
                wire.say(ENVELOPE + b'DATA\r\n' + HEADER.replace(b'<1@', b'<%d@' % i) + b'\r\nx\r\n.\r\n')
                wire.hears(5)
        self.assertEqual({wire.hears(6) for wire in wires}, {'220 250 250 250 354 250'})
        # The first went alone, and the others while it waited.
        self.assertLessEqual(self.metric('mailroom_submission_commits_total') - before, 2)
        # As the server counts them, with those of its own.
        self.assertLess(int(DATABASE.psql(next_transaction)) - transactions, 8)
        self.assertEqual(len(self.rows()), 64)

    def test_metrics_count_what_was_told(self):
        names = ('mailroom_submission_mails_total{role="shop"}', 'mailroom_submission_refusals_total{code="501"}')
        before = [self.metric(name) for name in names]
        wire = Wire(self.shop_port)
        wire.say(b'HELO\r\n' + ENVELOPE + b'DATA\r\n' + HEADER + b'\r\nx\r\n.\r\nQUIT\r\n')
        self.assertEqual(wire.end(), '220 501 250 250 250 354 250 221 end')
        self.assertEqual([self.metric(name) for name in names], [count + 1 for count in before])
        self.assertGreaterEqual(self.metric('mailroom_submission_commits_total'), 1)
        with urllib.request.urlopen(self.page('healthz')) as page:
            self.assertEqual(page.read(), b'ok\n')

    def reload(self):
        def count():
            return sum(1 for line in self.service.lines if line.get('message') == 'reloaded the configuration')
        before = count()
        self.service.process.send_signal(signal.SIGHUP)
        self.assertTrue(eventually(lambda: count() > before), self.service.lines)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
