#!/usr/bin/python3
"""clients_test.py MAILROOM: programs and libraries that send mail, unmodified, to a service that asks each of them for a login, TLS and all. The
bytes that are stored are those that the program was given, or has made, and a relay gets them: two parsers read it. What this machine lacks is
reported as not run. Needs the PostgreSQL of with-postgres for itself."""

import base64
import email
import email.policy
import json
import os
import socket
import subprocess
import sys
import tempfile
import unittest

from aiosmtpd.controller import Controller

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from submission_service import MAILROOM, Submission, ask_for_passwords, make_certificate, run  # noqa: E402
from own_database import OwnDatabase  # noqa: E402

DATABASE = OwnDatabase('clients_test')
MODULES = '/usr/local/share/mailroom-tests/producers/node_modules:/usr/local/share/nodejs:/usr/share/nodejs'
# What each of them is given: with dots, 8 bits, and no line that one of them might fold.
MAIL = ('From: Shop <shop@shop.example>\r\nTo: ada@mail.example\r\nDate: Sat, 28 Nov 2026 12:00:00 +0000\r\nMessage-ID: <{0}@shop.example>\r\n'
        'Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n'
        '\r\nZwölf\r\n.\r\n..\r\n\r\n.ende\r\n')
TEXT = 'Zwölf\n.\n..\n\n.ende\n'.encode()

SMTPLIB = """
import smtplib, ssl, sys
with smtplib.SMTP('localhost', @PORT@) as session:
    session.starttls(context=ssl.create_default_context(cafile='@CERTIFICATE@'))
    session.login('web', 'right')
    session.sendmail('shop@shop.example', 'ada@mail.example', open('@MAIL@', 'rb').read())
"""
DJANGO = """
import base64, os
from django.conf import settings
from django.core.mail import EmailMultiAlternatives, get_connection
os.environ['SSL_CERT_FILE'] = '@CERTIFICATE@'
settings.configure(EMAIL_HOST='localhost', EMAIL_PORT=@PORT@, EMAIL_USE_TLS=True, EMAIL_HOST_USER='web', EMAIL_HOST_PASSWORD='right')
mail = EmailMultiAlternatives('Grüße', 'Zwölf\\n.\\n..', 'shop@shop.example', ['ada@mail.example'], bcc=['archive@mail.example'])
mail.attach_alternative('<p>Zwölf</p>', 'text/html')
mail.attach('a.bin', bytes(range(256)), 'application/octet-stream')
kept = mail.message()
mail.message = lambda: kept
assert get_connection().send_messages([mail]) == 1
print(base64.b64encode(kept.as_bytes(linesep='\\r\\n')).decode())
"""
RUBY = """
require 'mail'
OpenSSL::SSL::SSLContext::DEFAULT_CERT_STORE.add_file('@CERTIFICATE@')
mail = Mail.new(from: 'Shop <shop@shop.example>', to: 'ada@mail.example', subject: 'Grüße', charset: 'UTF-8') do
  text_part { body "Zwölf\\n.\\n..\\n" }
  add_file filename: 'a.bin', content: (0..255).to_a.pack('C*')
end
mail.delivery_method :smtp, address: 'localhost', port: @PORT@, user_name: 'web', password: 'right', authentication: :login, enable_starttls: true
mail.deliver!
puts [Mail::Utilities.binary_unsafe_to_crlf(mail.encoded)].pack('m0')
"""
SYMFONY = """<?php
require_once '/usr/share/php/Symfony/Component/Mailer/autoload.php';
use Symfony\\Component\\Mailer\\Transport\\Smtp\\EsmtpTransport;
use Symfony\\Component\\Mime\\Email;
$transport = new EsmtpTransport('localhost', @PORT@, false);
$transport->setUsername('web')->setPassword('right');
$transport->getStream()->setStreamOptions(['ssl' => ['cafile' => '@CERTIFICATE@']]);
$mail = (new Email())->from('Shop <shop@shop.example>')->to('ada@mail.example')->bcc('archive@mail.example')->subject('Grüße')
    ->text("Zwölf\\n.\\n..\\n")->attach(implode('', array_map('chr', range(0, 255))), 'a.bin');
echo base64_encode($transport->send($mail)->toString());
"""
NODEMAILER = """
const { readFileSync } = require('fs');
const transporter = require('nodemailer').createTransport({ host: 'localhost', port: @PORT@, secure: true, pool: true, maxConnections: 3,
  auth: { user: 'web', pass: 'right' }, tls: { ca: readFileSync('@CERTIFICATE@') } });
const raw = readFileSync('@MAIL@');
Promise.all([...Array(20).keys()].map((i) => transporter.sendMail({ envelope: { from: 'shop@shop.example', to: 'ada@mail.example' },
  raw: raw.toString().replace('ID: <', `ID: <${i}.`) }))).then((sent) => { console.log(sent.length); transporter.close(); });
"""
PHP = """<?php
mail('ada@mail.example', 'Hello', "Zwoelf\\r\\n.\\r\\n", ['From' => 'shop@shop.example']) || exit(1);
"""
MSMTPRC = ('host localhost\nport @PORT@\ntls on\ntls_trust_file @CERTIFICATE@\nauth on\nuser web\npassword right\nfrom shop@shop.example\nhost localhost\n'
           'set_date_header off\nset_msgid_header off\n')

# Reads mails as json, [name, bytes in base64] of each part that is no multipart, behind the decoded subject.
READ_BY_RUBY = """
require 'json'
require 'mail'
def parts(mail) = mail.multipart? ? mail.parts.flat_map { |part| parts(part) } : [[mail.filename, [mail.decoded.b].pack('m0')]]
puts JSON.parse(STDIN.read).map { |bytes| mail = Mail.new(bytes.unpack1('m')); [mail.subject, *parts(mail)] }.to_json
"""


def read_by_python(raw):
    mail = email.message_from_bytes(raw, policy=email.policy.SMTP)
    return [mail['Subject'], *([part.get_filename(), base64.b64encode(part.get_payload(decode=True)).decode()]
                               for part in mail.walk() if not part.is_multipart())]


def free_port():
    with socket.create_server(('127.0.0.1', 0)) as server:
        return server.getsockname()[1]


class Relay:
    """Keeps what it is given: (envelope recipients, bytes)."""

    def __init__(self):
        self.taken = []

    async def handle_DATA(self, _server, _session, envelope):
        self.taken.append((envelope.rcpt_tos, envelope.original_content))
        return '250 ok'


class ClientsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        DATABASE.create(MAILROOM)
        run(MAILROOM, 'init', '--roles')
        DATABASE.psql("CREATE ROLE web LOGIN PASSWORD 'right' IN ROLE mailroom_submitter")
        ask_for_passwords(DATABASE, 'nobody')
        cls.key, cls.certificate = make_certificate(cls.directory.name, 'localhost')
        cls.relay = Relay()
        cls.controller = Controller(cls.relay, hostname='127.0.0.1', port=free_port(), decode_data=False)
        cls.controller.start()
        cls.service = Submission(['127.0.0.1:0', 'smtps://127.0.0.1:0'], MAILROOM_SUBMISSION_CERTIFICATE=cls.certificate,
                                 MAILROOM_SUBMISSION_KEY=cls.key)

    @classmethod
    def tearDownClass(cls):
        code = cls.service.stop()
        cls.controller.stop()
        assert code == 0, (code, cls.service.lines)
        DATABASE.drop()
        cls.directory.cleanup()

    def setUp(self):
        name = self.id().rpartition('.')[2]
        self.mail = MAIL.format(name).encode()
        self.file('mail', self.mail)
        DATABASE.psql('DELETE FROM mailroom_messages')

    def file(self, name, content):
        path = f'{self.directory.name}/{name}'
        if isinstance(content, str):
            content = self.filled(content).encode()
        with open(path, 'wb') as file:
            file.write(content)
        os.chmod(path, 0o600)
        return path

    def filled(self, text, port=0):
        return (text.replace('@PORT@', str(self.service.ports[port])).replace('@CERTIFICATE@', self.certificate)
                .replace('@MAIL@', f'{self.directory.name}/mail').replace('@MSMTPRC@', f'{self.directory.name}/msmtprc'))

    def needs(self, *command, **environment):
        if subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=dict(os.environ, **environment),
                          check=False).returncode != 0:
            print(f'NOT RUN: {self.id().rpartition(".")[2]}: {" ".join(command)} fails')
            return False
        return True

    def stored(self):
        """(recipients, bytes) of each that is stored, without what was put in front of all: Received."""
        rows = DATABASE.psql("SELECT enqueued_by, return_path, array_to_string(recipients, ' '), encode(raw, 'hex') FROM mailroom_messages ORDER BY id")
        found = []
        for owner, sender, to, raw in (row.split('\t') for row in rows.splitlines()):
            self.assertEqual((owner, sender), ('web', 'shop@shop.example'))
            lines = bytes.fromhex(raw).split(b'\r\n', 3)
            self.assertTrue(lines[0].startswith(b'Received: from ') and lines[1].endswith(b' with ESMTPSA;'), lines[:3])
            found.append((to, lines[3]))
        return found

    def assert_delivered(self, stored, part):
        """A relay gets a copy of these bytes for each recipient, and two parsers read the subject and `part` of them: its name and content."""
        self.relay.taken.clear()
        run(MAILROOM, '-q', 'send', '--once', env=dict(
            os.environ, MAILROOM_SEND_RELAY=f'smtp://127.0.0.1:{self.controller.port}',
            MAILROOM_SEND_FROM='shop@shop.example', MAILROOM_SEND_LINK='https://shop.example/{action}?token={token}', MAILROOM_SECRET_KEY='07' * 32))
        raws = [raw for _, raw in self.relay.taken]
        self.assertEqual(sorted((to, raw.split(b'\r\n', 3)[3]) for [to], raw in self.relay.taken),
                         sorted((to, mail) for all_to, mail in stored for to in all_to.split()))
        readings = [read_by_python(raw) for raw in raws]
        if self.needs('ruby', '-e', "require 'mail'"):
            encoded = json.dumps([base64.b64encode(raw).decode() for raw in raws])
            readings += json.loads(run('ruby', self.file('read.rb', READ_BY_RUBY), input=encoded))
        for subject, *parts in readings:
            self.assertEqual(subject, 'Grüße')
            contents = [(name, base64.b64decode(content)) for name, content in parts]
            self.assertIn(part, [(name, content if name else content.replace(b'\r\n', b'\n')) for name, content in contents])

    def assert_given(self, *command, end=b'', **options):
        """`end`: what the program adds."""
        run(*command, **options)
        stored = self.stored()
        self.assertEqual(stored, [('ada@mail.example', self.mail + end)])
        self.assert_delivered(stored, (None, TEXT + end.replace(b'\r\n', b'\n')))

    def test_smtplib(self):
        self.assert_given('/usr/bin/python3', '-c', self.filled(SMTPLIB))

    def test_curl(self):
        for port, url in ((0, 'smtp'), (1, 'smtps')):
            with self.subTest(url):
                DATABASE.psql('DELETE FROM mailroom_messages')
                self.assert_given('curl', '-sS', '--ssl-reqd', '--cacert', self.certificate, '--user', 'web:right', '--mail-from', 'shop@shop.example',
                                  '--mail-rcpt', 'ada@mail.example', '-T', f'{self.directory.name}/mail',
                                  f'{url}://localhost:{self.service.ports[port]}')

    def test_swaks(self):
        if self.needs('swaks', '--version'):
            self.assert_given('swaks', '--server', 'localhost', '--port', str(self.service.ports[0]), '--tls', '--auth', 'LOGIN', '--auth-user', 'web',
                              '--auth-password', 'right', '--from', 'shop@shop.example', '--to', 'ada@mail.example', '--data',
                              f'@{self.directory.name}/mail', end=b'\r\n')

    def test_msmtp(self):
        if self.needs('msmtp', '--version'):
            configuration = self.file('msmtprc', MSMTPRC)
            self.assert_given('msmtp', '-C', configuration, 'ada@mail.example', input=self.mail.decode().replace('\r\n', '\n'))

    def test_php(self):
        if self.needs('msmtp', '--version') and self.needs('php', '--version'):
            self.file('msmtprc', MSMTPRC)
            run('php', '-d', self.filled('sendmail_path=msmtp -C @MSMTPRC@ -t'), self.file('mail.php', PHP))
            [(to, mail)] = self.stored()
            self.assertEqual(to, 'ada@mail.example')
            self.assertIn(b'Subject: Hello\r\n', mail)

    def test_nodemailer(self):
        if self.needs('node', '-e', "require('nodemailer')", NODE_PATH=MODULES):
            printed = run('node', '-e', self.filled(NODEMAILER, 1), env=dict(os.environ, NODE_PATH=MODULES))
            self.assertEqual(printed, '20\n')
            self.assertEqual(sorted(mail for _, mail in self.stored()), sorted(self.mail.replace(b'ID: <', f'ID: <{i}.'.encode()) for i in range(20)))

    def assert_made(self, printed, recipients, end=b''):
        stored = self.stored()
        self.assertEqual(stored, [(recipients, base64.b64decode(printed) + end)])
        self.assert_delivered(stored, ('a.bin', bytes(range(256))))

    def test_django(self):
        if self.needs('/usr/bin/python3', '-c', 'import django'):
            self.assert_made(run('/usr/bin/python3', '-c', self.filled(DJANGO)), 'ada@mail.example archive@mail.example')

    def test_ruby_mail(self):
        if self.needs('ruby', '-e', "require 'mail'"):
            self.assert_made(run('ruby', self.file('mail.rb', RUBY)), 'ada@mail.example')

    def test_symfony(self):
        if self.needs('php', '-r', "require '/usr/share/php/Symfony/Component/Mailer/autoload.php';"):
            self.assert_made(run('php', self.file('symfony.php', SYMFONY)), 'ada@mail.example archive@mail.example', end=b'\r\n')


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
