#!/usr/bin/python3
"""kill_test.py MAILROOM: kills the service and its server with SIGKILL while clients mail, each of which repeats a mail, byte by byte,
until it has an answer. Each 250 is one row, none is there twice, and none is cut. Needs the PostgreSQL of with-postgres.
"""

import collections
import hashlib
import os
import re
import smtplib
import sys
import threading
import time
import unittest

sys.dont_write_bytecode = True
sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)),
                os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'support')]
from free_port import free_port  # noqa: E402
from own_database import OwnDatabase, run  # noqa: E402
from submission_service import MAILROOM, Submission, kill_server  # noqa: E402

DATABASE = OwnDatabase('kill_test')
CLIENTS = 8
MAILS = 60  # of all between two kills


def mail(client, number):
    body = hashlib.sha256(f'{client}.{number}'.encode()).hexdigest() * 40
    lines = '\r\n'.join(body[i:i + 76] for i in range(0, len(body), 76))
    return (f'From: shop@shop.example\r\nDate: Sat, 28 Nov 2026 12:00:00 +0000\r\nMessage-ID: <{client}.{number}@shop.example>\r\n'
            f'Subject: {number}\r\n\r\n{lines}\r\n').encode()


class KillTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        DATABASE.create(MAILROOM)
        run(MAILROOM, 'init', '--roles')
        DATABASE.psql('CREATE ROLE shop LOGIN IN ROLE mailroom_submitter')

    def client(self, client):
        number = 0
        while not self.is_over:
            try:
                with smtplib.SMTP('127.0.0.1', self.port, timeout=60) as session:
                    session.ehlo()
                    session.mail('shop@shop.example')
                    session.rcpt('ada@mail.example')
                    code, text = session.data(mail(client, number))
                    if code == 250:
                        self.told[client, number] = text.decode().rpartition(':')[2]
                        number += 1
            except (smtplib.SMTPException, OSError):
                time.sleep(0.05)

    def wait_for_mails(self):
        """At counts, not at times: a kill meets mails on their way however fast the machine is."""
        count = len(self.told) + MAILS
        while len(self.told) < count:
            time.sleep(0.001)

    def test_each_250_is_one_row(self):
        self.port = free_port()
        self.told = {}
        self.is_over = False

        def start():
            return Submission([f'127.0.0.1:{self.port}=shop'])
        service = start()
        clients = [threading.Thread(target=self.client, args=(i,)) for i in range(CLIENTS)]
        for each in clients:
            each.start()
        for what in ('service', 'server', 'service', 'server', 'service'):
            self.wait_for_mails()
            if what == 'service':
                service.kill()
                service = start()
            else:
                kill_server()
        self.wait_for_mails()
        self.is_over = True
        for each in clients:
            each.join()
        self.assertEqual(service.stop(), 0)
        rows = DATABASE.psql("SELECT id, encode(raw, 'hex') FROM mailroom_messages").split()
        raw = {rows[i]: bytes.fromhex(rows[i + 1]) for i in range(0, len(rows), 2)}
        self.assertEqual(len(set(self.told.values())), len(self.told), 'two mails were told one id')
        for (client, number), message in self.told.items():
            self.assertTrue(message in raw, 'a mail that was told 250 is lost')
            self.assertTrue(raw[message].endswith(b'\r\n' + mail(client, number)), 'a mail is cut')
        # A mail that was on its way at the end may be stored, and nobody was told.
        kept = collections.Counter(re.search(b'Message-ID: <(.*?)@', each).group(1) for each in raw.values())
        self.assertEqual([each for each, count in kept.items() if count > 1], [], 'mails are there twice')


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
