#!/usr/bin/python3
"""dkim_test.py MAILROOM: mails that their program has signed (DKIM) before it asks mailroom for them, in its transaction: the bytes that a
relay gets are the same, and the signature holds. Needs a PostgreSQL in PGHOST and PGUSER.
"""

import os
import socket
import subprocess
import sys
import unittest

import dkim
import psycopg2
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP

sys.dont_write_bytecode = True
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'support'))
from own_database import OwnDatabase, run  # noqa: E402

MAILROOM = sys.argv[1]
DATABASE = OwnDatabase('dkim_test')
HEADER = ('From: Shop <shop@shop.example>\r\nTo: Ada <ada@example.org>\r\nSubject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\r\n'
          'Date: Sat, 28 Nov 2026 14:00:00 +0000\r\nMessage-ID: <1@shop.example>\r\nMIME-Version: 1.0\r\n')
MAILS = {
    'text in 8 bits': HEADER + 'Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\nÖl für alle\r\n',
    'dots and blanks': HEADER + '\r\n.a dot\r\n..two\r\n.\x20\r\n.\r\n\ttabs and blanks  \r\n\r\n\r\n',
    'a long line': HEADER + '\r\n' + 'x' * 5000 + '\r\n',
    'no line end': HEADER + '\r\nthe end',
    'no body': HEADER + '\r\n',
    'folded as nobody else does': 'X-Odd:\r\n\t\r\n  1\r\n' + HEADER + '\r\nx\r\n',
}


class Keeper:
    """Keeps what a relay gets."""

    def __init__(self):
        self.taken = []

    async def handle_DATA(self, server, session, envelope):
        self.taken.append((envelope.rcpt_tos[0], envelope.original_content))
        return '250 taken'


class SignedMails(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        DATABASE.create(MAILROOM, MAILROOM_SECRET_KEY='a' * 64, MAILROOM_SEND_FROM='no-reply@app.example',
                        MAILROOM_SEND_BOUNCE_ADDRESS='bounce+{id}@app.example', MAILROOM_SEND_HEADERS='X-Shop: 1')
        SMTP.line_length_limit = 100_000
        cls.key = subprocess.run(['openssl', 'genrsa', '-traditional', '2048'], check=True, capture_output=True).stdout
        public = subprocess.run(['openssl', 'rsa', '-pubout', '-outform', 'der'], input=cls.key, check=True,
                                capture_output=True).stdout
        cls.record = b'v=DKIM1; k=rsa; p=' + subprocess.run(['base64', '-w0'], input=public, check=True,
                                                              capture_output=True).stdout

    @classmethod
    def tearDownClass(cls):
        DATABASE.drop()

    def holds(self, mail):
        return dkim.verify(mail, dnsfunc=lambda *_, **__: self.record)

    def send(self):
        keeper = Keeper()
        with socket.create_server(('127.0.0.1', 0)) as free:
            port = free.getsockname()[1]
        controller = Controller(keeper, hostname='127.0.0.1', port=port, decode_data=False)
        controller.start()
        try:
            run(MAILROOM, 'send', '--once', '--relay', f'smtp://127.0.0.1:{port}')
        finally:
            controller.stop()
        return keeper.taken

    def test_a_signature_holds_at_the_relay(self):
        for canonical in (b'relaxed', b'simple'):
            signed = {}
            with psycopg2.connect(f'dbname={DATABASE.name}') as connection, connection.cursor() as cursor:
                for name, text in MAILS.items():
                    mail = text.encode()
                    signed[name] = dkim.sign(mail, b's1', b'shop.example', self.key, canonicalize=(canonical, canonical)) + mail
                    self.assertTrue(self.holds(signed[name]), name)
                    cursor.execute('SELECT id FROM mailroom_submit(%s, %s, %s)',
                                   (['shop@shop.example'], ['ada@example.org\nbo@example.org'], [psycopg2.Binary(signed[name])]))
            taken = self.send()
            self.assertEqual(len(taken), 2 * len(MAILS))
            # SMTP ends each mail in a line end.
            wanted = sorted(mail if mail.endswith(b'\r\n') else mail + b'\r\n' for mail in signed.values())
            for address in ('ada@example.org', 'bo@example.org'):
                self.assertEqual(sorted(mail for to, mail in taken if to == address), wanted)
            for _, mail in taken:
                self.assertTrue(self.holds(mail), mail)

    def test_a_mail_that_is_changed_is_told(self):
        """Or else the test above could not fail."""
        mail = MAILS['dots and blanks'].encode()
        signed = dkim.sign(mail, b's1', b'shop.example', self.key) + mail
        self.assertFalse(self.holds(signed.replace(b'..two', b'.two')))


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
