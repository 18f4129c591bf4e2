#!/usr/bin/python3
"""resend_emulate_test.py MAILROOM: mails by npm's emulate, which stands in for Resend and keeps its keys of 24 hours, and reads back what
it took. Needs a PostgreSQL in PGHOST and PGUSER, and the modules that scripts/install-packages --tests installs.
"""

import collections
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, '..', 'support'))
from free_port import free_port  # noqa: E402
from killed_senders import kill_senders  # noqa: E402
from own_database import OwnDatabase, run  # noqa: E402

MAILROOM = sys.argv[1]
MODULES = '/usr/local/share/mailroom-tests/providers'
KEY = 're_geheim_geheim'


class Gate(ThreadingHTTPServer):
    """Stands before the emulator: counts requests, and loses the answers that `loses` says, after the emulator has taken the request."""
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, target):
        super().__init__(('127.0.0.1', 0), GateHandler)
        self.target = target
        self.requests = collections.Counter()
        self.loses = lambda number: False
        self.lock = threading.Lock()
        self.keys = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f'http://127.0.0.1:{self.server_address[1]}'

    def handle_error(self, request, client_address):
        pass  # a client may close the connection at any time


class GateHandler(BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.forward(None)

    def do_POST(self):
        self.forward(self.rfile.read(int(self.headers['Content-Length'])))

    def forward(self, body):
        gate = self.server
        with gate.lock:
            gate.requests[self.path] += 1
            number = sum(gate.requests.values())
            gate.keys.append(self.headers['Idempotency-Key'])
        request = urllib.request.Request(gate.target + self.path, body, dict(self.headers), method=self.command)
        try:
            answer = urllib.request.urlopen(request)
        except urllib.error.HTTPError as error:
            answer = error
        with answer:
            data = answer.read()
        if gate.loses(number):
            self.close_connection = True
            return
        self.send_response(answer.status)
        self.send_header('Content-Type', 'application/json')
        self.send_header('Content-Length', str(len(data)))
        self.end_headers()
        self.wfile.write(data)


class ResendEmulateTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        port = free_port()
        cls.url = f'http://127.0.0.1:{port}'
        cls.emulator = subprocess.Popen(['node', os.path.join(HERE, 'emulate_server.mjs'), MODULES, str(port)], stdin=subprocess.PIPE)
        cls.addClassCleanup(cls.stop_emulator)
        cls.wait_for_emulator()
        cls.directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.directory.cleanup)
        key = os.path.join(cls.directory.name, 'key')
        with open(os.open(key, os.O_WRONLY | os.O_CREAT, 0o600), 'w', encoding='ascii') as file:
            file.write(KEY + '\n')
        cls.database = OwnDatabase('resend_emulate_test')
        cls.database.create(MAILROOM, MAILROOM_SECRET_KEY='ab' * 32, MAILROOM_SEND_RELAY='resend://', MAILROOM_SEND_RESEND_KEY_FILE=key,
                            MAILROOM_SEND_FROM='Exämple, Inc. <no-reply@app.example>',
                            MAILROOM_SEND_UNSUBSCRIBE_LINK='https://app.example/u/{token}', MAILROOM_SEND_UNSUBSCRIBE_MAILTO='off+{id}@app.example')
        cls.database.psql("SELECT mailroom_create_topic('news', 'News')")
        cls.addClassCleanup(cls.database.drop)

    @classmethod
    def stop_emulator(cls):
        cls.emulator.stdin.close()
        cls.emulator.wait()

    @classmethod
    def wait_for_emulator(cls):
        for _ in range(300):
            try:
                return urllib.request.urlopen(cls.url + '/emails').close()
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.1)
        raise RuntimeError('emulate does not listen')

    def setUp(self):
        self.gate = Gate(self.url)
        self.addCleanup(self.gate.server_close)
        self.addCleanup(self.gate.shutdown)
        os.environ['MAILROOM_SEND_RESEND_ENDPOINT'] = self.gate.url
        self.marker = self.id().rsplit('.', 1)[-1].removeprefix('test_')

    def mails(self):
        """Those of this test, by their recipients."""
        with urllib.request.urlopen(self.url + '/emails') as answer:
            mails = json.load(answer)['data']
        return [mail for mail in mails if mail['subject'].startswith(self.marker)]

    def insert(self, first, last, **content):
        content = {'text': "E'zahlen\\n.' || n", **content}
        columns = ', '.join(f'{name} => {value}' for name, value in content.items())
        self.database.psql(f"""SELECT mailroom_send(ARRAY['Ümit ' || n || ' <{self.marker}' || n || '@mail.example>'],
                               subject => '{self.marker} Grüße ' || n, {columns}) FROM generate_series({first}, {last}) AS n""")

    def send(self, *options):
        return subprocess.run([MAILROOM, 'send', '--once', *options], check=True, text=True, stderr=subprocess.PIPE).stderr

    def deliveries(self):
        rows = self.database.psql(f"""SELECT d.state, d.reply, d.unknowns FROM mailroom_deliveries d JOIN tokens t ON t.id = d.token
                                      JOIN mailroom_messages m ON m.id = t.message WHERE m.subject LIKE '{self.marker}%'""")
        return [row.split('\t') for row in rows.splitlines()]

    def mailed_once(self):
        """How many were mailed; fails if somebody was mailed twice."""
        counts = collections.Counter(recipient for mail in self.mails() for recipient in mail['to'])
        self.assertEqual({name: count for name, count in counts.items() if count > 1}, {}, 'mailed twice')
        return len(counts)

    def assert_each_once(self, last):
        self.assertEqual(self.mailed_once(), last)

    def test_many_mails_leave_in_few_requests_as_they_were_composed(self):
        self.insert(1, 250, html="'<p>ä ' || n || '</p>'", headers="""'{"X-Campaign": "spring"}'::jsonb""", reply_to="'help@app.example'")
        log = self.send()
        self.assert_each_once(250)
        mail = next(mail for mail in self.mails() if mail['subject'].endswith(' 7'))
        self.assertEqual(mail['from'], '"Exämple, Inc." <no-reply@app.example>')
        self.assertEqual(mail['to'], [f'Ümit 7 <{self.marker}7@mail.example>'])
        self.assertEqual(mail['reply_to'], ['help@app.example'])
        self.assertEqual(mail['text'].strip(), 'zahlen\n.7')
        self.assertIn('<p>ä 7</p>', mail['html'])
        self.assertEqual(mail['headers']['X-Campaign'], 'spring')
        self.assertEqual(mail['headers']['Auto-Submitted'], 'auto-generated')
        self.assertNotIn('Date', mail['headers'])
        self.assertEqual([tag['name'] for tag in mail['tags']], ['queue', 'token'])
        self.assertEqual(sorted(reply for _, reply, _ in self.deliveries()), sorted(mail['id'] for mail in self.mails()))
        self.assertLessEqual(self.gate.requests['/emails/batch'], 4)
        self.assertNotIn(KEY, log)

    def test_a_mail_that_is_refused_does_not_stop_the_others(self):
        self.insert(1, 19)
        self.database.psql("SELECT mailroom_send(ARRAY['nobody@mail.example'], subject => '', text => 'x')")
        self.send()
        self.assert_each_once(19)
        # Parts of a refused pack leave together; the one that is refused, alone at last.
        self.assertLess(self.gate.requests['/emails'] + self.gate.requests['/emails/batch'], 20)
        refused = self.database.psql("SELECT state, code, reply FROM mailroom_deliveries WHERE state = 'rejected'")
        self.assertEqual(refused.strip(), 'rejected\t422\tvalidation_error: Missing required field: subject')

    def test_a_lost_answer_is_asked_for_again_with_the_same_key(self):
        self.insert(1, 120)
        self.gate.loses = lambda number: number % 2 == 1
        self.send()
        self.assert_each_once(120)
        self.assertEqual({(state, unknowns) for state, _, unknowns in self.deliveries()}, {('accepted', '0')})
        self.assertTrue(any('sent again with the same key' in reply for _, reply, _ in self.deliveries()))

    def test_a_mail_that_is_sent_again_on_purpose_is_another_one(self):
        self.insert(1, 1)
        self.send()
        run(MAILROOM, 'resend', f'{self.marker}1@mail.example', '--yes', '--reason', 'lost')
        self.send()
        self.assertEqual(len(self.mails()), 2)

    def lose_first_answer_while_reader_leaves(self, address):
        def loses(number):
            if number == 1:
                self.database.psql(f"SELECT mailroom_unsubscribe('{address}', 'news')")
            return number == 1
        self.gate.loses = loses

    def test_who_leaves_meanwhile_lets_nobody_be_mailed_twice(self):
        self.insert(1, 5, topic="'news'")
        reader = f'{self.marker}3@mail.example'
        self.lose_first_answer_while_reader_leaves(reader)
        self.send()
        self.assert_each_once(5)
        self.assertEqual(self.gate.requests['/emails/batch'], 2)
        self.assertEqual(len(set(self.gate.keys)), 1)
        self.assertEqual({(state, unknowns) for state, _, unknowns in self.deliveries()}, {('accepted', '0')})
        self.assertIn('it was on its way when its reader unsubscribed', run(MAILROOM, 'audit', reader))

    def test_a_mail_alone_is_not_repeated_once_its_reader_left(self):
        self.insert(1, 1, topic="'news'")
        self.lose_first_answer_while_reader_leaves(f'{self.marker}1@mail.example')
        self.send()
        self.assertEqual(self.gate.requests['/emails'], 1)
        self.send()
        self.assertEqual(self.gate.requests['/emails'], 1)

    def test_senders_that_are_killed_mail_nobody_twice(self):
        most = 25
        self.gate.loses = lambda number: number % 3 == 0

        def count(rows):
            return int(self.database.psql(f'SELECT count(*) FROM {rows}'))
        before = count('mailroom_batches WHERE attempts > 1')
        senders = kill_senders(MAILROOM, 90, lambda number: self.insert(number * most + 1, (number + 1) * most),
                               lambda: count('mailroom_batches WHERE attempts > 1') >= before + 5)
        self.assertGreaterEqual(count('mailroom_batches WHERE attempts > 1'), before + 5, 'too few kills met a mail')
        # A batch that was cut off twice is not tried a third time.
        self.assertGreaterEqual(self.mailed_once() + count("mailroom_deliveries WHERE state = 'unknown'"), senders * most)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
