#!/usr/bin/python3
"""bounce_listen_test.py MAILROOM: posts events of Resend to `mailroom bounce --listen`, signed by npm's standardwebhooks. Needs a PostgreSQL
in PGHOST and PGUSER, and the modules that scripts/install-packages --tests installs.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, '..', 'support'))
from own_database import OwnDatabase  # noqa: E402

MAILROOM = sys.argv[1]
MODULES = '/usr/local/share/mailroom-tests/providers'
SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'


def event(id, address, kind='bounced', sent_at='2026-01-01T00:00:00.000Z', **more):
    return {'type': f'email.{kind}', 'created_at': sent_at,
            'data': {'created_at': sent_at, 'email_id': id, 'to': [address], 'tags': {'queue': 'mailroom', 'token': '1'}, **more}}


BOUNCE = {'bounce': {'type': 'Permanent', 'subType': 'General', 'message': 'no', 'diagnosticCode': ['smtp; 550 5.1.1 user unknown']}}


class BounceListenTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        secret = os.path.join(directory.name, 'secret')
        with open(os.open(secret, os.O_WRONLY | os.O_CREAT, 0o600), 'w', encoding='ascii') as file:
            file.write(SECRET + '\n')
        self.database = OwnDatabase('bounce_listen_test')
        self.database.create(MAILROOM, MAILROOM_SECRET_KEY='ab' * 32, MAILROOM_BOUNCE_RESEND_SECRET_FILES=secret)
        self.addCleanup(self.database.drop)
        self.reader = subprocess.Popen([MAILROOM, 'bounce', '--listen', '127.0.0.1:0'], text=True, stderr=subprocess.PIPE)
        self.addCleanup(self.stop)
        self.url = 'http://' + re.search(r'127\.0\.0\.1:\d+', self.reader.stderr.readline())[0]

    def stop(self):
        """What it has logged, if it was running."""
        if self.reader.poll() is not None:
            return ''
        self.reader.terminate()
        return self.reader.communicate()[1]

    def post(self, event, secret=SECRET, seconds=None, **headers):
        body = (event if isinstance(event, str) else json.dumps(event)).encode()
        seconds = str(seconds or int(time.time()))
        signature = subprocess.run(['node', os.path.join(HERE, 'sign_webhook.mjs'), MODULES, secret, 'msg_1', seconds], check=True,
                                   input=body, stdout=subprocess.PIPE).stdout.decode().strip()
        headers = {'svix-id': 'msg_1', 'svix-timestamp': seconds, 'svix-signature': signature, 'Content-Type': 'application/json', **headers}
        return self.ask(urllib.request.Request(self.url + '/events', body, headers))

    @staticmethod
    def ask(request):
        try:
            with urllib.request.urlopen(request) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            return error.code

    def mail(self, id, address):
        """A mail that Resend has taken. Returns its token."""
        return int(self.database.psql(f"""
            WITH message AS (SELECT mailroom_send(ARRAY['{address}'], subject => 'x', text => 'y') AS id)
            INSERT INTO mailroom_deliveries (queue, token, state, batch, reply, address, accepted_at)
            SELECT 'mailroom', (SELECT coalesce(max(token), 0) + 1 FROM mailroom_deliveries), 'accepted', 1, '{id}', '{address}', now()
            FROM message RETURNING token"""))

    def bounces(self):
        return self.database.psql("SELECT count(*), count(token) FROM mailroom_bounces").split()

    def test_a_signed_event_is_recorded_once_and_suppresses_its_address(self):
        self.mail('id-1', 'ada@mail.example')
        bounce = event('id-1', 'ada@mail.example', **BOUNCE)
        self.assertEqual([self.post(bounce), self.post(bounce)], [200, 200])
        self.assertEqual(self.bounces(), ['1', '1'])
        self.assertEqual(self.database.psql('SELECT address FROM mailroom_suppressions').strip(), 'ada@mail.example')
        self.assertEqual(self.post(event('id-1', 'ada@mail.example', 'opened')), 200)
        log = self.stop()
        self.assertIn('read reports reports=2 hard=1 suppressed=1', log)
        self.assertNotIn(SECRET, log)

    def test_whoever_has_no_secret_changes_nothing(self):
        self.mail('id-1', 'ada@mail.example')
        bounce = event('id-1', 'ada@mail.example', **BOUNCE)
        now = int(time.time())
        self.assertEqual(self.post(bounce, secret='whsec_' + 'A' * 32), 401)
        self.assertEqual(self.post(bounce, seconds=now - 400), 401)
        self.assertEqual(self.post(bounce, seconds=now + 400), 401)
        self.assertEqual(self.post(bounce, **{'svix-id': 'msg_2'}), 401)
        self.assertEqual(self.post(bounce, **{'svix-signature': ''}), 401)
        self.assertEqual(self.ask(urllib.request.Request(self.url, b'{}')), 401)
        self.assertEqual(self.ask(urllib.request.Request(self.url)), 405)
        self.assertEqual(self.bounces(), ['0', '0'])
        self.assertIn('refused requests count=6', self.stop())

    def test_a_long_body_is_not_read(self):
        self.assertEqual(self.post('"' + 'x' * (1 << 20) + '"'), 413)
        self.assertEqual(self.post('"' + 'x' * ((1 << 20) - 2) + '"'), 400)

    def test_an_event_before_its_mail_is_on_record_is_asked_for_again(self):
        bounce = event('id-1', 'ada@mail.example', sent_at=time.strftime('%Y-%m-%dT%H:%M:%S.000Z', time.gmtime()), **BOUNCE)
        self.assertEqual(self.post(bounce), 503)
        self.assertEqual(self.bounces(), ['1', '0'])
        self.mail('id-1', 'ada@mail.example')
        self.assertEqual(self.post(bounce), 200)
        self.assertEqual(self.bounces(), ['1', '1'])
        # One of a mail that will never be known is recorded, and not asked for for ever.
        self.assertEqual(self.post(event('id-9', 'bob@mail.example', **BOUNCE)), 200)
        self.assertEqual(self.bounces(), ['2', '1'])

    def test_while_the_database_is_away_events_are_asked_for_again(self):
        self.mail('id-1', 'ada@mail.example')
        name = self.database.name
        self.database.psql(f'ALTER DATABASE {name} ALLOW_CONNECTIONS false', database='postgres')
        self.database.psql(f"SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = '{name}'", database='postgres')
        bounce = event('id-1', 'ada@mail.example', **BOUNCE)
        self.assertEqual(self.post(bounce), 503)
        self.assertEqual(self.post(bounce), 503)
        self.database.psql(f'ALTER DATABASE {name} ALLOW_CONNECTIONS true', database='postgres')
        for _ in range(100):
            if (status := self.post(bounce)) == 200:
                break
            self.assertEqual(status, 503)
            time.sleep(0.1)
        self.assertEqual(status, 200)
        self.assertEqual(self.bounces(), ['1', '1'])


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
