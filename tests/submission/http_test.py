#!/usr/bin/python3
"""http_test.py MAILROOM: mails over HTTP. The requests of tests/http/cases.json, what no SDK sends, and that keys are roles. Needs the PostgreSQL
of with-postgres, and node for the requests.
"""

import json
import os
import re
import select
import socket
import subprocess
import sys
import threading
import time
import unittest

sys.dont_write_bytecode = True
sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)),
                os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'support')]
from free_port import free_port  # noqa: E402
from http_cases import Player, play_all  # noqa: E402
from http_service import MAIL, Client, HttpService, create_database, create_key  # noqa: E402
from submission_service import MAILROOM, PATIENCE, eventually, run  # noqa: E402

EMULATE = '/usr/local/share/mailroom-tests/providers'
MODULES = os.environ.get('MAILROOM_TEST_HTTP_MODULES', '/usr/local/share/mailroom-tests/http')
CASES = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'http')
# Bytes that are sent as they are, and the status that must come, or none where the connection ends without one.
AUTH = 'Authorization: Bearer {key}\r\n'
RAW = [
    ('two lengths', 'POST /emails HTTP/1.1\r\nHost: x\r\n' + AUTH + 'Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n', 400),
    ('one length twice', 'POST /emails HTTP/1.1\r\nHost: x\r\n' + AUTH + 'Content-Length: 2\r\nContent-Length: 2\r\n\r\n{{}}', 400),
    ('no CRLF', 'GET /emails HTTP/1.1\nHost: x\n\n', 400),
    ('a blank before the colon', 'GET /emails HTTP/1.1\r\nHost : x\r\n\r\n', 400),
    ('a folded header', 'GET /emails HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n', 400),
    ('no host', 'GET /emails HTTP/1.1\r\n' + AUTH + '\r\n', 400),
    ('another version', 'GET /emails HTTP/3.0\r\nHost: x\r\n\r\n', 400),
    ('a long line', 'GET /' + 'a' * 9000 + ' HTTP/1.1\r\nHost: x\r\n\r\n', 413),
    ('a length that is too large', 'POST /emails HTTP/1.1\r\nHost: x\r\n' + AUTH + 'Content-Length: 999999999999\r\n\r\n', 413),
    ('no key, and no body yet', 'POST /emails HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n', 401),
    ('a wrong key, and no body yet', 'POST /emails HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer re_' + 'x' * 43 + '\r\nContent-Length: 100000\r\n\r\n', 401),
    ('an encoded body', 'POST /emails HTTP/1.1\r\nHost: x\r\n' + AUTH + 'Content-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc', 415),
    ('chunks', 'POST /emails HTTP/1.1\r\nHost: x\r\n' + AUTH + 'Transfer-Encoding: chunked\r\n\r\n1\r\n{{\r\n1;a=b\r\n}}\r\n0\r\nX: y\r\n\r\n', 422),
    ('100-continue', 'POST /emails HTTP/1.1\r\nHost: x\r\n' + AUTH + 'Expect: 100-continue\r\nContent-Length: 2\r\n\r\n', 100),
    ('HTTP/1.0', 'GET /emails?limit=1 HTTP/1.0\r\n' + AUTH + '\r\n', 200),
]
# Bodies, their status, and what the message names.
BODIES = [
    ('{"from": "a@shop.example", "from": "b@shop.example"}', 400, '`from`'),
    ('[' * 40 + ']' * 40, 400, 'deep'),
    ('{"subject": "\\ud800"}', 400, 'JSON'),
    (b'{"subject": "\xff"}', 400, 'JSON'),
    (json.dumps({**MAIL, 'text': 'a\0b'}), 422, '`text`'),
    (json.dumps({**MAIL, 'subject': 'a\0b'}), 422, '`subject`'),
    (json.dumps({**MAIL, 'template': {'id': 'a', 'variables': {'b': 'a\0'}}, 'text': None}), 422, '`template`'),
    (json.dumps({**MAIL, 'attachments': [{'filename': 'a\0', 'content': 'aGkK'}]}), 422, '`attachments`'),
    (json.dumps({**MAIL, 'headers': {'Subject': 'a'}}), 422, '`headers`'),
    (json.dumps({**MAIL, 'topic_id': 'nothing'}), 422, '`topic_id`'),
    (json.dumps({**MAIL, 'text': None, 'template': {'id': '../a'}}), 422, '`template`'),
    (json.dumps({**MAIL, 'replyTo': 'a@shop.example'}), 422, '`replyTo`'),
    (json.dumps({**MAIL, 'attachments': [{'content': 'aGkK', 'path': 'https://files.example/a'}]}), 422, 'both'),
    (json.dumps({**MAIL, 'attachments': [{'filename': 'a/b', 'content': 'aGkK'}]}), 422, 'slash'),
    (json.dumps({**MAIL, 'headers': {'X-Mailroom-Kind': 'a'}}), 422, 'X-Mailroom-Kind'),
    ('null', 422, 'object'),
    ('', 400, 'JSON'),
]


class HttpTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.database = create_database('http_test')
        cls.keys = {'shop': create_key('shop'), 'other': create_key('other'), 'sending': create_key('shop', '--permission', 'sending_access')}
        cls.service = HttpService()

    @classmethod
    def tearDownClass(cls):
        code = cls.service.stop()
        cls.database.drop()
        assert code == 0, cls.service.lines

    def client(self, key='shop'):
        client = Client(self.service.http, self.keys[key])
        self.addCleanup(client.close)
        return client

    def emulator(self, names):
        """A player of npm's emulate, which stands in for Resend; None where that is not installed."""
        if not os.path.isdir(f'{EMULATE}/node_modules/emulate'):
            print('NOT RUN: the comparison with emulate: scripts/install-packages --tests', file=sys.stderr)
            return None
        port = free_port()
        emulator = subprocess.Popen(['node', f'{CASES}/../providers/emulate_server.mjs', EMULATE, str(port)], stdin=subprocess.PIPE)

        def stop():
            emulator.stdin.close()
            emulator.wait()
        self.addCleanup(stop)

        def answers():
            with socket.socket() as probe:
                return probe.connect_ex(('127.0.0.1', port)) == 0
        self.assertTrue(eventually(answers), 'emulate does not listen')
        return Player(port, 're_a', names)

    def test_each_request_of_the_contract(self):
        names = {'own_key': self.keys['shop'], 'other_key': self.keys['other'], 'send_key': self.keys['sending']}
        ours = Player(self.service.http, self.keys['shop'], dict(names))
        count, found = play_all(f'{CASES}/cases.json', ours, self.emulator(dict(names)))
        self.assertEqual((count, found), (122, []))

    def test_sdks_as_they_are(self):
        if not os.path.isdir(f'{MODULES}/node_modules/resend'):
            print("NOT RUN: Resend's SDKs: scripts/install-packages --tests", file=sys.stderr)
            return
        done = subprocess.run(['node', f'{CASES}/sdk.mjs', MODULES, f'http://127.0.0.1:{self.service.http}', self.keys['shop']],
                              text=True, capture_output=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        for name, seen in json.loads(done.stdout).items():
            stored = self.database.psql(f"SELECT count(*) FROM mailroom_messages WHERE mailroom_email_id(id) IN ('{seen['sent']}', '{seen['batch'][0]}', "
                                        f"'{seen['batch'][1]}') AND subject = '{name}' AND owner = 'shop'::regrole::oid::bigint").strip()
            self.assertEqual(stored, '3', name)

    def test_what_is_no_request_ends_the_connection(self):
        for what, text, status in RAW:
            with self.subTest(what), socket.create_connection(('127.0.0.1', self.service.http), PATIENCE) as wire:
                wire.sendall(text.format(key=self.keys['shop']).encode())
                heard = b''
                while b'\r\n\r\n' not in heard and (more := wire.recv(65536)):
                    heard += more
                self.assertEqual(heard[:12].decode(), f'HTTP/1.{1} {status}')

    def test_slow_requests_end_and_hold_up_nobody(self):
        service = HttpService(MAILROOM_SUBMISSION_TIMEOUT='1s')
        head = f"POST /emails HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {self.keys['shop']}\r\n"
        slow = {'line': 'POST /em', 'head': head, 'body': head + 'Content-Length: 1000\r\n\r\n{', 'chunk': head + 'Transfer-Encoding: chunked\r\n\r\n3e8\r\n{'}
        wires = {name: socket.create_connection(('127.0.0.1', service.http), PATIENCE) for name in slow}
        for name, wire in wires.items():
            self.addCleanup(wire.close)
            wire.sendall(slow[name].encode())
        client = Client(service.http, self.keys['shop'])
        open_wires = dict(wires)
        until = time.monotonic() + PATIENCE
        while open_wires and time.monotonic() < until:
            self.assertEqual(client.send()[0], 200)
            for name, wire in list(open_wires.items()):
                try:
                    wire.sendall(b' ')  # slowly, but again and again
                    wire.settimeout(0.05)
                    if wire.recv(1000) == b'':
                        del open_wires[name]
                except TimeoutError:
                    continue
                except ConnectionError:
                    del open_wires[name]
        self.assertEqual(open_wires, {})
        client.close()
        self.assertEqual(service.stop(), 0)

    def test_a_body_without_end_is_refused_and_takes_no_memory(self):
        small = HttpService(MAILROOM_SUBMISSION_MEMORY='16MB')
        self.addCleanup(small.stop)
        for service, said in ((self.service, '413'), (small, '503')):
            with self.subTest(said), socket.create_connection(('127.0.0.1', service.http), PATIENCE) as wire:
                wire.sendall(f"POST /emails HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {self.keys['shop']}\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
                chunk = b'100000\r\n' + b'x' * 1048576 + b'\r\n'
                sent = 0
                while sent < 120 and not select.select([wire], [], [], 0)[0]:
                    wire.sendall(chunk)
                    sent += 1
                self.assertEqual(wire.recv(1000)[:12].decode(), f'HTTP/1.1 {said}')
        with open(f'/proc/{small.process.pid}/status', encoding='ascii') as file:
            self.assertLess(int(re.search(r'VmHWM:\s+(\d+)', file.read()).group(1)), 80 * 1024)

    def test_a_body_that_two_readers_could_read_differently_is_refused(self):
        client = self.client()
        for body, status, named in BODIES:
            with self.subTest(body):
                got, answer = client.ask('POST', '/emails', body)
                self.assertEqual((got, answer['statusCode']), (status, status))
                self.assertIn(named, answer['message'])

    def test_a_request_in_pieces_is_the_same_request(self):
        body = json.dumps(MAIL).encode()
        head = f"POST /emails HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {self.keys['shop']}\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        with socket.create_connection(('127.0.0.1', self.service.http), PATIENCE) as wire:
            for octet in head + body + head:
                wire.sendall(bytes([octet]))
            wire.sendall(body)
            heard = b''
            while heard.count(b'"id"') < 2:
                heard += wire.recv(65536)
        self.assertEqual(heard.count(b'HTTP/1.1 200 OK'), 2)

    def test_nothing_is_stored_with_a_key_that_was_revoked(self):
        key = create_key('shop', '--name', 'short')
        client = Client(self.service.http, key)
        self.addCleanup(client.close)
        self.assertEqual(client.send()[0], 200)
        run(MAILROOM, 'key', 'revoke', key[:8])
        self.assertEqual(client.send()[1]['name'], 'invalid_api_key')
        self.assertEqual(client.ask('GET', '/emails')[0], 401)
        self.assertIn('revoked', run(MAILROOM, 'key', 'list'))
        self.assertNotIn(key, run(MAILROOM, '-o', 'json', 'key', 'list') + json.dumps(self.service.lines))

    def test_a_key_of_another_transaction_holds_up_no_other_request(self):
        client = self.client()
        self.assertEqual(client.send('warm')[0], 200)
        holder = subprocess.Popen(['psql', '-XAtq', '-d', self.database.name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        holder.stdin.write("BEGIN; SET LOCAL ROLE shop; SELECT mailroom_send(ARRAY['ada@example.org'], subject => 'Hello', text => 'It works.', "
                           "sender => 'Shop <no-reply@shop.example>', idempotency_key => 'held');\n")
        holder.stdin.flush()
        message = holder.stdout.readline().strip()
        answers = []
        waiting = threading.Thread(target=lambda: answers.append(self.client().send('held')))
        waiting.start()
        time.sleep(0.3)
        for _ in range(5):
            began = time.monotonic()
            self.assertEqual(client.send()[0], 200)
            self.assertLess(time.monotonic() - began, 2)
        self.assertEqual(answers, [])
        holder.communicate('COMMIT;\n')
        waiting.join()
        self.assertEqual(answers[0][0], 200)
        self.assertEqual(self.database.psql(f"SELECT mailroom_email_id({message})").strip(), answers[0][1]['id'])

    def test_a_mail_that_is_moved_and_cancelled_says_what_is_true(self):
        client = self.client()
        _, sent = client.send(scheduled_at='in 2 days')
        self.assertEqual(client.ask('PATCH', f"/emails/{sent['id'].upper()}", {'scheduled_at': 'in 3 days'})[0], 200)
        self.assertEqual(self.client('other').ask('PATCH', f"/emails/{sent['id']}", {'scheduled_at': 'in 3 days'})[0], 404)
        self.assertEqual(self.client('other').ask('POST', f"/emails/{sent['id']}/cancel")[0], 404)
        self.assertEqual(client.ask('POST', f"/emails/{sent['id']}/cancel")[0], 200)
        _, got = client.ask('GET', f"/emails/{sent['id']}")
        self.assertEqual(got['last_event'], 'canceled')
        shown = run(MAILROOM, 'message', 'show', sent['id'])
        self.assertIn(sent['id'], shown)
        self.assertIn('cancelled', run(MAILROOM, 'audit', sent['id']))
        self.assertIn('cancelled', run(MAILROOM, 'audit', f"message:{sent['id']}"))

    def test_a_role_over_its_rate_is_told_when_to_come_back(self):
        self.database.psql('CREATE ROLE limited; GRANT mailroom_producer TO limited; GRANT limited TO mailroom_submission')
        self.database.psql("SELECT mailroom_limit('limited', 2, '1 hour')")
        client = Client(self.service.http, create_key('limited'))
        self.addCleanup(client.close)
        told = []
        for body in ({}, {'to': 'nobody'}, {}, {}):
            status, _ = client.send(**body)
            told.append((status, client.headers['ratelimit-remaining']))
        self.assertEqual(told, [(200, '1'), (422, '1'), (200, '0'), (429, '0')])
        self.assertGreater(int(client.headers['retry-after']), 1000)
        self.assertEqual((client.headers['ratelimit-limit'], client.headers['ratelimit-policy']), ('2', '2;w=3600'))
        self.assertGreater(int(client.headers['ratelimit-reset']), 3000)
        self.assertEqual(client.ask('GET', '/emails')[0], 200)
        self.assertEqual(client.headers['ratelimit-remaining'], '0')
        other = self.client()
        self.assertEqual(other.send()[0], 200)
        self.assertIsNone(other.headers['ratelimit-limit'])

    def test_without_the_database_nothing_is_stored_and_said_so(self):
        service = HttpService(MAILROOM_SUBMISSION_PATIENCE='2s')
        try:
            client = Client(service.http, self.keys['shop'])
            self.assertEqual(client.send()[0], 200)
            self.database.psql('ALTER ROLE mailroom_submission NOLOGIN')
            self.database.psql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'mailroom_submission'")
            # Of the first the session has gone, which may have stored it.
            self.assertIn(client.send()[0], (500, 503))
            status, answer = client.send()
            self.assertEqual((status, answer['name']), (503, 'application_error'))
            self.assertIn('retry-after', client.headers)
            self.database.psql('ALTER ROLE mailroom_submission LOGIN')
            self.assertTrue(eventually(lambda: client.send()[0] == 200))
            client.close()
        finally:
            self.database.psql('ALTER ROLE mailroom_submission LOGIN')
            self.assertEqual(service.stop(), 0)

    def test_what_was_refused_is_in_the_log_without_the_mail(self):
        self.client().send(to='secret-name@')
        entries = [each for each in self.service.lines if each.get('message') == 'refused a request' and each.get('field') == 'to']
        self.assertTrue(eventually(lambda: any(each.get('message') == 'refused a request' and each.get('field') == 'to' for each in self.service.lines)), entries)
        self.assertNotIn('secret-name', json.dumps(self.service.lines))


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
