#!/usr/bin/python3
"""bounce_test.py SOURCE MAILROOM: mails messages through a real Postfix (scripts/with-postfix) to a server that refuses some
recipients, and reads what Postfix sends back with `mailroom bounce`, as the role of docs/security.md. Needs a PostgreSQL
in PGHOST and PGUSER.
"""

import os
import re
import socketserver
import sys
import threading
import time
import unittest

sys.dont_write_bytecode = True
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'support'))
from own_database import OwnDatabase, run  # noqa: E402

SOURCE, MAILROOM = sys.argv[1], sys.argv[2]
DATABASE = OwnDatabase('bounce_test')
ROLE = f'mailroom_bouncer_{os.getpid()}'
PATIENCE = 60
REFUSALS = {
    'gone': '550 5.1.1 <{}>: Recipient address rejected: User unknown in virtual mailbox table',
    'full': '552 5.2.2 <{}>: Mailbox is over quota',
    'late': '451 4.3.0 <{}>: Temporary lookup failure',
}


class RefusingServer(socketserver.StreamRequestHandler):
    """An SMTP server that answers RCPT by the name before the @."""

    def handle(self):
        self.say('220 next.example')
        for line in self.rfile:
            words = line.decode('ascii', 'replace').strip()
            verb = words[:4].upper()
            if verb == 'RCPT':
                address = re.search('<(.*?)>', words)[1]
                self.say(REFUSALS[address.partition('@')[0]].format(address))
            elif verb == 'DATA':
                self.say('554 5.5.1 no valid recipients')
            else:
                self.say('221 bye' if verb == 'QUIT' else '250 ok')
            if verb == 'QUIT':
                return

    def say(self, reply):
        self.wfile.write(f'{reply}\r\n'.encode())


def run_within_postfix():
    """Runs this test again, beside a Postfix that hands mails on to a refusing server."""
    with socketserver.ThreadingTCPServer(('127.0.0.1', 0), RefusingServer) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        arguments = [f'{SOURCE}/scripts/with-postfix', '--next', f'127.0.0.1:{server.server_address[1]}', '--',
                     sys.executable, *sys.argv]
        status = os.spawnv(os.P_WAIT, arguments[0], arguments)
        server.shutdown()
    return status


class BounceTest(unittest.TestCase):
    """Three messages, of which each comes back for another reason."""

    @classmethod
    def setUpClass(cls):
        DATABASE.create(MAILROOM, MAILROOM_SECRET_KEY='ab' * 32, MAILROOM_SEND_RELAY=os.environ['MAILROOM_TEST_RELAY'],
                        MAILROOM_SEND_FROM='no-reply@app.example', MAILROOM_SEND_BOUNCE_ADDRESS='bounce+{id}@app.example')
        DATABASE.make_roles(MAILROOM)
        DATABASE.psql(f'CREATE ROLE {ROLE} LOGIN IN ROLE {DATABASE.name}_bouncer')
        for name in REFUSALS:
            DATABASE.psql(f"SELECT mailroom_send(ARRAY['{name}@mx.next.example'], subject => 'x', text => 'y')")
        run(MAILROOM, 'send', '--once')
        cls.maildir = os.environ['MAILROOM_TEST_MAILDIR']
        deadline = time.monotonic() + PATIENCE
        while len(os.listdir(f'{cls.maildir}/new')) < len(REFUSALS):
            if time.monotonic() > deadline:
                raise AssertionError(f'not all bounces came: {os.listdir(cls.maildir + "/new")}')
            time.sleep(0.05)
        cls.mails = []
        for name in os.listdir(f'{cls.maildir}/new'):
            with open(f'{cls.maildir}/new/{name}', encoding='utf-8') as file:
                cls.mails.append(file.read())
        run(MAILROOM, 'bounce', '--maildir', cls.maildir, '--once',
            env=dict(os.environ, MAILROOM_DATABASE_URL=f'dbname={DATABASE.name} user={ROLE}'))

    @classmethod
    def tearDownClass(cls):
        DATABASE.psql(f'DROP OWNED BY {ROLE}; DROP ROLE {ROLE}')
        DATABASE.drop()

    def test_postfix_sends_the_ids_back(self):
        for mail in self.mails:
            address = re.search(r'^To: bounce\+(\S+)@app\.example$', mail, re.MULTILINE)
            envelope = re.search(r'^Original-Envelope-Id: (\S+)$', mail, re.MULTILINE)
            self.assertEqual(address[1], envelope[1])

    def test_each_comes_back_for_its_reason(self):
        rows = DATABASE.psql('SELECT address, kind, reason, status FROM mailroom_bounced_addresses() ORDER BY address')
        self.assertEqual(rows.splitlines(), ['full@mx.next.example\tsoft\tmailbox_full\t5.2.2',
                                             'gone@mx.next.example\thard\tuser_unknown\t5.1.1',
                                             'late@mx.next.example\tsoft\tnetwork\t4.3.0'])

    def test_only_the_unknown_address_is_suppressed(self):
        self.assertEqual(DATABASE.psql('SELECT address FROM mailroom_suppressions').split(), ['gone@mx.next.example'])

    def test_audit_tells_what_came_back(self):
        self.assertIn('then bounced', run(MAILROOM, 'audit', 'full@mx.next.example'))
        self.assertIn('User unknown in virtual mailbox table', run(MAILROOM, 'audit', 'gone@mx.next.example'))

    def test_the_next_mail_to_that_address_leaves_no_more(self):
        DATABASE.psql("SELECT mailroom_send(ARRAY['gone@mx.next.example'], subject => 'x', text => 'y')")
        run(MAILROOM, 'send', '--once')
        said = run(MAILROOM, 'audit', 'gone@mx.next.example')
        self.assertIn('cancelled', said)
        self.assertIn("mailroom suppression remove 'gone@mx.next.example'", said)

    def test_every_report_is_moved_and_none_needs_a_look(self):
        self.assertEqual(os.listdir(f'{self.maildir}/new'), [])
        self.assertEqual([name for name in os.listdir(f'{self.maildir}/cur') if not name.endswith(':2,S')], [])


if __name__ == '__main__':
    if os.geteuid() != 0:
        sys.exit(print('NOT RUN: only root can start a Postfix'))
    if 'MAILROOM_TEST_RELAY' not in os.environ:
        sys.exit(run_within_postfix())
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
