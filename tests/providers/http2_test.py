#!/usr/bin/python3
"""http2_test.py MAILROOM: where a provider offers HTTP/2, the mails of a claim share one connection. Needs a PostgreSQL in PGHOST and
PGUSER, node and openssl.
"""

import collections
import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, '..', 'support'))
from own_database import OwnDatabase, run  # noqa: E402

MAILROOM = sys.argv[1]


class Http2Test(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        file = lambda name: os.path.join(directory.name, name)  # noqa: E731
        run('openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2', '-subj', '/CN=127.0.0.1',
            '-addext', 'subjectAltName=IP:127.0.0.1', '-keyout', file('key.pem'), '-out', file('cert.pem'), stderr=subprocess.DEVNULL)
        with open(os.open(file('resend-key'), os.O_WRONLY | os.O_CREAT, 0o600), 'w', encoding='ascii') as key:
            key.write('re_geheim\n')
        self.server = subprocess.Popen(['node', os.path.join(HERE, 'http2_server.mjs'), file('key.pem'), file('cert.pem')], text=True,
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        port = json.loads(self.server.stdout.readline())['port']
        database = OwnDatabase('http2_test')
        # With a second relay in the list, each mail is a request.
        database.create(MAILROOM, MAILROOM_SECRET_KEY='ab' * 32, MAILROOM_SEND_RELAY='resend://,smtp://127.0.0.1:1',
                        MAILROOM_SEND_RESEND_KEY_FILE=file('resend-key'), MAILROOM_SEND_CA_FILE=file('cert.pem'),
                        MAILROOM_SEND_RESEND_ENDPOINT=f'https://127.0.0.1:{port}', MAILROOM_SEND_FROM='no-reply@app.example')
        self.addCleanup(database.drop)
        self.database = database

    def test_mails_that_leave_together_share_a_connection(self):
        self.database.psql("SELECT mailroom_send(ARRAY['u' || n || '@mail.example'], subject => 'x', text => 'y') FROM generate_series(1, 64) AS n")
        run(MAILROOM, 'send', '--once', '--connections', '16', '--batch-limit', '64', stderr=subprocess.DEVNULL)
        self.server.stdin.close()
        seen = collections.Counter(self.server.stdout.read().split('\n'))
        self.server.stdout.close()
        self.server.wait()
        self.assertEqual(seen['{"request":"2.0"}'], 64)
        self.assertEqual(seen['{"connection":true}'], 1)
        self.assertEqual(self.database.psql("SELECT state, count(*) FROM mailroom_deliveries GROUP BY 1").strip(), 'accepted\t64')


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
