#!/usr/bin/python3
"""http_cancel_test.py MAILROOM [ROUNDS]: cancels mails over HTTP while a sender takes them. Of a mail whose end was told 200 the relay gets nothing, and one that it
gets was told 422. Needs the PostgreSQL of with-postgres. Without ROUNDS 40; 1,000 take some minutes.
"""

import os
import random
import re
import socketserver
import subprocess
import sys
import threading
import time
import unittest

sys.dont_write_bytecode = True
ROUNDS = int(sys.argv.pop(2)) if len(sys.argv) > 2 else 40
sys.path[:0] = [os.path.dirname(os.path.abspath(__file__))]
from http_service import Client, HttpService, create_database, create_key  # noqa: E402
from submission_service import MAILROOM, eventually  # noqa: E402

CLIENTS = 8


class Relay(socketserver.ThreadingTCPServer):
    """Takes each mail after a moment in which somebody may cancel it."""

    daemon_threads = True

    def __init__(self):
        self.taken = set()
        super().__init__(('127.0.0.1', 0), Session)


class Session(socketserver.StreamRequestHandler):
    def handle(self):
        self.wfile.write(b'220 relay\r\n')
        for line in self.rfile:
            if line.upper().startswith(b'DATA'):
                self.wfile.write(b'354 go on\r\n')
                text = b''
                while not text.endswith(b'\r\n.\r\n'):
                    text += self.rfile.readline()
                time.sleep(random.random() * 0.03)
                self.server.taken.add(re.search(rb'(?m)^Subject: (\S+)', text).group(1).decode())
                self.wfile.write(b'250 2.0.0 ok\r\n')
            elif line.upper().startswith(b'QUIT'):
                self.wfile.write(b'221 bye\r\n')
                return
            else:
                self.wfile.write(b'250 ok\r\n')


class CancelTest(unittest.TestCase):
    def client(self, name):
        client = Client(self.service.http, self.key)
        for i in range(ROUNDS // CLIENTS):
            subject = f'{name}.{i}'
            status, sent = client.send(subject=subject)
            self.assertEqual(status, 200)
            time.sleep(random.random() ** 2 * 0.03)
            status, answer = client.ask('POST', f"/emails/{sent['id']}/cancel")
            self.told[subject] = (status, answer.get('message', ''))
        client.close()

    def test_no_mail_of_which_the_end_was_told(self):
        create_database('http_cancel_test')
        self.key = create_key('shop')
        self.told = {}
        self.service = HttpService()
        relay = Relay()
        threading.Thread(target=relay.serve_forever, daemon=True).start()
        sender = subprocess.Popen([MAILROOM, 'send', '--batch-limit', '20'], stderr=subprocess.DEVNULL,
                                  env=dict(os.environ, MAILROOM_SEND_RELAY=f'smtp://127.0.0.1:{relay.server_address[1]}', MAILROOM_SEND_FROM='a@shop.example', MAILROOM_SECRET_KEY='ab' * 32))
        clients = [threading.Thread(target=self.client, args=(i,)) for i in range(CLIENTS)]
        for each in clients:
            each.start()
        for each in clients:
            each.join()
        left = {subject for subject, (status, _) in self.told.items() if status == 422}
        self.assertTrue(eventually(lambda: left <= relay.taken), left - relay.taken)
        time.sleep(1)
        self.assertIsNone(sender.poll())
        sender.terminate()
        sender.wait()
        self.assertEqual(self.service.stop(), 0)
        relay.shutdown()
        relay.server_close()
        self.assertEqual(len(self.told), ROUNDS // CLIENTS * CLIENTS)
        self.assertEqual({subject for subject, (status, _) in self.told.items() if status == 200} & relay.taken, set())
        self.assertEqual({status for status, _ in self.told.values()} - {200, 422}, set())
        self.assertTrue(0 < len(left) < len(self.told), f'no race: {len(left)} of {len(self.told)} were too late')
        print(f'{len(self.told)} rounds, {len(left)} of them too late', file=sys.stderr)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
