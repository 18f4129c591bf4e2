#!/usr/bin/python3
"""http_outcomes_test.py MAILROOM: outcomes as Resend's events, read by npm's standardwebhooks and by the SDK's own webhooks.verify. Needs the PostgreSQL of
with-postgres and node.
"""

import json
import os
import socketserver
import subprocess
import sys
import tempfile
import threading
import unittest

sys.dont_write_bytecode = True
sys.path[:0] = [os.path.dirname(os.path.abspath(__file__))]
from http_service import Client, HttpService, create_database, create_key  # noqa: E402
from submission_service import MAILROOM, eventually, run  # noqa: E402

MODULES = os.environ.get('MAILROOM_TEST_HTTP_MODULES', '/usr/local/share/mailroom-tests/http')
RECEIVER = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'http', 'receive_events.mjs')
SECRET = 'whsec_' + 'bWFpbHJvb20gdGVzdHMgaXRzIGV2ZW50cyE='
SETTINGS = {'MAILROOM_SEND_FROM': 'a@shop.example', 'MAILROOM_SECRET_KEY': 'ab' * 32}


class Relay(socketserver.StreamRequestHandler):
    """Refuses gone@ for good and later@ for now."""

    def handle(self):
        try:
            self.play()
        except ConnectionResetError:
            pass  # of a sender that has ended

    def play(self):
        self.wfile.write(b'220 relay\r\n')
        for line in self.rfile:
            word = line[:4].upper()
            if word == b'DATA':
                self.wfile.write(b'354 go on\r\n')
                while self.rfile.readline() != b'.\r\n':
                    pass
            if word == b'RCPT' and b'gone@' in line:
                self.wfile.write(b'550 5.1.1 no such user\r\n')
            elif word == b'RCPT' and b'later@' in line:
                self.wfile.write(b'451 4.2.0 try again later\r\n')
            else:
                self.wfile.write(b'221 bye\r\n' if word == b'QUIT' else b'250 2.0.0 ok\r\n')


class Receiver:
    """`requests` is what it was posted."""

    def __init__(self, *statuses):
        self.process = subprocess.Popen(['node', RECEIVER, MODULES, SECRET, ','.join(map(str, statuses))], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.url = f'http://127.0.0.1:{int(self.process.stdout.readline())}/webhooks'
        self.requests = []
        self._reader = threading.Thread(target=lambda: self.requests.extend(map(json.loads, self.process.stdout)))
        self._reader.start()

    def end(self):
        self.process.stdin.close()
        self._reader.join()
        self.process.stdout.close()
        self.process.wait()


class OutcomesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.database = create_database('http_outcomes_test')
        cls.service = HttpService()
        cls.client = Client(cls.service.http, create_key('shop'))
        cls.relay = socketserver.ThreadingTCPServer(('127.0.0.1', 0), Relay)
        cls.relay.daemon_threads = True
        threading.Thread(target=cls.relay.serve_forever, daemon=True).start()
        cls.directory = tempfile.TemporaryDirectory()
        cls.secret = f'{cls.directory.name}/secret'
        with open(cls.secret, 'w', encoding='ascii') as file:
            file.write(SECRET + '\n')
        os.chmod(cls.secret, 0o600)

    @classmethod
    def tearDownClass(cls):
        cls.client.close()
        code = cls.service.stop()
        cls.relay.shutdown()
        cls.relay.server_close()
        cls.directory.cleanup()
        cls.database.drop()
        assert code == 0, cls.service.lines

    def tell(self, *statuses):
        """What the application was posted by one run, and the words of the command."""
        receiver = Receiver(*statuses)
        done = subprocess.run([MAILROOM, 'outcomes', '--once', '--format', 'resend', '--to', receiver.url], text=True, stderr=subprocess.PIPE,
                              check=False, env=dict(os.environ, MAILROOM_SINK_SIGNING_SECRET_FILES=self.secret, **SETTINGS))
        receiver.end()
        for each in receiver.requests:
            self.assertTrue(each['sdk'], f'webhooks.verify refuses {each}')
            self.assertTrue(each['standard'], f'standardwebhooks refuses {each}')
            self.assertRegex(each['id'], '^msg_[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$')
        return receiver.requests, done

    def told(self):
        requests, done = self.tell()
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads(each['body']) for each in requests]

    def mail(self, to, **fields):
        status, sent = self.client.send(to=to, **fields)
        self.assertEqual(status, 200, sent)
        return sent['id']

    def send_mails(self):
        subprocess.run([MAILROOM, 'send', '--once'], check=True, stderr=subprocess.DEVNULL, env=dict(
            os.environ, MAILROOM_SEND_RELAY=f'smtp://127.0.0.1:{self.relay.server_address[1]}', **SETTINGS))

    def by_recipient(self, events):
        return {event['data']['to'][0]: event for event in events}

    def token_of(self, message):
        return self.database.psql(f"SELECT id FROM tokens WHERE message = mailroom_message_of('{message}')").strip()

    def setUp(self):
        self.told()

    def test_each_outcome_has_its_event(self):
        ids = {name: self.mail(f'{name}@example.org', tags=[{'name': 'kind', 'value': name}]) for name in ('ada', 'gone', 'later')}
        self.send_mails()
        events = self.by_recipient(self.told())
        self.assertEqual({name: events[f'{name}@example.org']['type'] for name in ids},
                         {'ada': 'email.sent', 'gone': 'email.failed', 'later': 'email.delivery_delayed'})
        for name, message in ids.items():
            event = events[f'{name}@example.org']
            self.assertEqual(event['data']['email_id'], message)
            self.assertEqual(event['data']['from'], 'Shop <no-reply@shop.example>')
            self.assertEqual((event['data']['subject'], event['data']['tags']), ('Hello', {'kind': name}))
            for time in (event['created_at'], event['data']['created_at']):
                self.assertRegex(time, r'^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$')
            self.assertNotIn('null', json.dumps(event))
        self.assertIn('5.1.1 no such user', events['gone@example.org']['data']['failed']['reason'])

    def test_what_comes_back_has_its_event_and_its_reason(self):
        ids = {name: self.mail(f'{name}@example.org') for name in ('bounces', 'full', 'complains', 'arrives')}
        self.send_mails()
        self.told()
        for name, kind, reason in (('bounces', 'hard', '550 5.1.1 no such user'), ('full', 'soft', 'mailbox_full'),
                                   ('complains', 'complaint', 'abuse'), ('arrives', 'delivered', '')):
            report = json.dumps({'address': f'{name}@example.org', 'kind': kind, 'reason': reason, 'token': int(self.token_of(ids[name]))})
            self.database.psql(f"SELECT mailroom_report('{report}')")
        events = self.by_recipient(self.told())
        self.assertEqual({name: events[f'{name}@example.org']['type'] for name in ids}, {
            'bounces': 'email.bounced', 'full': 'email.bounced', 'complains': 'email.complained', 'arrives': 'email.delivered'})
        bounce = events['bounces@example.org']['data']['bounce']
        self.assertEqual((bounce['type'], bounce['subType']), ('Permanent', 'NoEmail'))
        self.assertEqual(bounce['diagnosticCode'], ['smtp; 550 5.1.1 no such user'])
        self.assertEqual(events['full@example.org']['data']['bounce']['type'], 'Transient')
        self.assertEqual(events['full@example.org']['data']['bounce']['subType'], 'MailboxFull')
        # The next mail to it does not leave.
        again = self.mail('bounces@example.org')
        self.send_mails()
        event = self.by_recipient(self.told())['bounces@example.org']
        self.assertEqual((event['type'], event['data']['email_id']), ('email.suppressed', again))
        self.assertEqual((event['data']['suppressed']['reason'], event['data']['suppressed']['type']), ('previous_bounce', 'OnAccountSuppressionList'))

    def test_what_its_sender_cancels_is_no_event(self):
        message = self.mail('ada@example.org', scheduled_at='in 2 hours')
        self.assertEqual(self.client.ask('POST', f'/emails/{message}/cancel')[0], 200)
        self.database.psql("SELECT mailroom_send(ARRAY['bob@example.org'], subject => 'Hello', text => 'Hello')")
        self.send_mails()
        self.assertEqual([event['data']['to'] for event in self.told()], [['bob@example.org']])
        self.assertEqual(self.database.psql('SELECT count(*) FROM mailroom_outcomes').strip(), '0')

    def test_only_2xx_ends_an_event_which_is_signed_anew_and_else_the_same(self):
        self.mail('ada@example.org')
        self.send_mails()
        seen = []
        for status in (400, 410, 302, 500):
            requests, _ = self.tell(status)
            seen += requests
            self.assertEqual(self.database.psql('SELECT count(*) FROM mailroom_outcomes').strip(), '1', f'{status} has ended it')
            self.database.psql("UPDATE mailroom_outcomes SET not_before = now()")
        requests, done = self.tell()
        self.assertEqual(done.returncode, 0, done.stderr)
        seen += requests
        self.assertGreaterEqual(len(seen), 5)
        self.assertEqual(len({(each['id'], each['body']) for each in seen}), 1)
        self.assertEqual(len({(each['timestamp'], each['signature']) for each in seen}), len({each['timestamp'] for each in seen}))
        self.assertEqual(self.database.psql('SELECT count(*) FROM mailroom_outcomes').strip(), '0')

    def test_nothing_but_a_server_takes_events(self):
        done = subprocess.run([MAILROOM, 'outcomes', '--format', 'resend', '--exec', 'cat'], stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn('posts events to a server', done.stderr)


if __name__ == '__main__':
    if not os.path.isdir(f'{MODULES}/node_modules/resend'):
        print("NOT RUN: Resend's SDK: scripts/install-packages --tests")
        sys.exit(0)
    unittest.main(argv=sys.argv[:1])
