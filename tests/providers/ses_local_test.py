#!/usr/bin/python3
"""ses_local_test.py MAILROOM: mails by aws-ses-v2-local, which stands in for Amazon SES, and reads back what it took. Needs a PostgreSQL
in PGHOST and PGUSER, and the modules that scripts/install-packages --tests installs.
"""

import collections
import json
import os
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request

sys.dont_write_bytecode = True
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'support'))
from free_port import free_port  # noqa: E402
from killed_senders import kill_senders  # noqa: E402
from own_database import OwnDatabase, run  # noqa: E402

MAILROOM = sys.argv[1]
SERVER = '/usr/local/share/mailroom-tests/providers/node_modules/aws-ses-v2-local'
START = f"require('{SERVER}').default({{host: '127.0.0.1', port: Number(process.argv[1])}})"
ACCOUNT = {
    'DedicatedIpAutoWarmupEnabled': False, 'EnforcementStatus': 'HEALTHY', 'ProductionAccessEnabled': False, 'SendingEnabled': True,
    'Details': {'AdditionalContactEmailAddresses': [], 'ContactLanguage': 'EN', 'MailType': 'TRANSACTIONAL',
                'ReviewDetails': {'CaseId': '1', 'Status': 'PENDING'}, 'UseCaseDescription': 'x', 'WebsiteURL': 'https://app.example'},
    'SendQuota': {'Max24HourSend': 200, 'MaxSendRate': 1, 'SentLast24Hours': 7}, 'SuppressionAttributes': {'SuppressedReasons': []}}
SECRET = 'geheim/geheim+geheim'
MAILS_EACH = 25


class SesLocalTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.port = free_port()
        cls.url = f'http://127.0.0.1:{cls.port}'
        cls.server = subprocess.Popen(['node', '-e', START, str(cls.port)], env={**os.environ, 'AWS_SES_ACCOUNT': json.dumps(ACCOUNT)})
        cls.addClassCleanup(cls.stop_server)
        cls.wait_for_server()
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        credentials = os.path.join(directory.name, 'credentials')
        with open(os.open(credentials, os.O_WRONLY | os.O_CREAT, 0o600), 'w', encoding='ascii') as file:
            file.write(f'[default]\naws_access_key_id = AKIDEXAMPLE\naws_secret_access_key = {SECRET}\n')
        cls.database = OwnDatabase('ses_local_test')
        cls.database.create(MAILROOM, MAILROOM_SECRET_KEY='ab' * 32, MAILROOM_SEND_RELAY='ses://eu-west-1',
                            MAILROOM_SEND_SES_ENDPOINT=cls.url, MAILROOM_SEND_SES_CREDENTIALS_FILE=credentials,
                            MAILROOM_SEND_FROM='Exämple <no-reply@app.example>')
        cls.addClassCleanup(cls.database.drop)

    @classmethod
    def stop_server(cls):
        cls.server.kill()
        cls.server.wait()

    @classmethod
    def wait_for_server(cls):
        for _ in range(300):
            try:
                return urllib.request.urlopen(cls.url + '/health-check').close()
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.1)
        raise RuntimeError('aws-ses-v2-local does not listen')

    def setUp(self):
        urllib.request.urlopen(urllib.request.Request(self.url + '/clear-store', method='POST')).close()

    def store(self):
        with urllib.request.urlopen(self.url + '/store') as answer:
            return json.load(answer)['emails']

    def test_each_mail_arrives_once_as_it_is(self):
        self.database.psql("""
            SELECT mailroom_send(ARRAY['user' || n || '@mail.example'], subject => 'Grüße ' || n, text => E'zahlen\\n.' || n,
                                 html => '<p>ä ' || n || '</p>')
            FROM generate_series(1, 200) AS n""")
        log = subprocess.run([MAILROOM, 'send', '--once', '--connections', '16', '--batch-limit', '100'], check=True, text=True,
                             stderr=subprocess.PIPE).stderr
        mails = self.store()
        self.assertEqual(len(mails), 200)
        by_subject = {mail['subject']: mail for mail in mails}
        for number in range(1, 201):
            mail = by_subject[f'Grüße {number}']
            self.assertEqual(mail['destination']['to'], [f'user{number}@mail.example'])
            self.assertEqual(mail['body']['text'].strip(), f'zahlen\n.{number}')
            self.assertIn(f'<p>ä {number}</p>', mail['body']['html'])
            self.assertIn('no-reply@app.example', mail['from'])
        replies = self.database.psql("SELECT sink, reply FROM mailroom_deliveries WHERE state = 'accepted'").splitlines()
        self.assertEqual({f'127.0.0.1:{self.port}\t{mail["messageId"]}' for mail in mails} - set(replies), set())
        ids = self.database.psql("SELECT message_id FROM mailroom_deliveries WHERE state = 'accepted'").split()
        self.assertEqual({f'{mail["messageId"]}@eu-west-1.amazonses.com' for mail in mails} - set(ids), set())
        self.assertNotIn(SECRET, log)

    def unknown(self):
        return int(self.database.psql("SELECT count(*) FROM mailroom_deliveries WHERE state = 'unknown'"))

    def copies(self):
        """How many mails each recipient got."""
        return collections.Counter(mail['destination']['to'][0] for mail in self.store())

    def mail_with_kills(self, met):
        """How many senders mailed, most of which were killed. Each had MAILS_EACH mails more to send."""
        return kill_senders(MAILROOM, 20, lambda number: self.database.psql(f"""
            SELECT mailroom_send(ARRAY['k' || n || '@mail.example'], subject => 'x', text => 'y')
            FROM generate_series({number * MAILS_EACH + 1}, {(number + 1) * MAILS_EACH}) AS n"""), met)

    def test_a_sender_that_is_killed_mails_a_batch_twice_at_most(self):
        before = self.unknown()
        senders = self.mail_with_kills(lambda: max(self.copies().values(), default=0) > 1)
        copies = self.copies()
        # A batch that was cut off twice is not tried a third time.
        self.assertGreaterEqual(len(copies) + self.unknown() - before, senders * MAILS_EACH)
        twice = [count for count in copies.values() if count > 1]
        self.assertLessEqual(sum(twice) - len(twice), senders * 10)
        self.assertGreater(len(twice), 0, 'no kill met a mail: the test shows nothing')

    def test_with_hold_a_sender_that_is_killed_mails_nobody_twice(self):
        os.environ['MAILROOM_SEND_WHEN_UNKNOWN'] = 'hold'
        self.addCleanup(os.environ.pop, 'MAILROOM_SEND_WHEN_UNKNOWN')
        before = self.unknown()
        senders = self.mail_with_kills(lambda: self.unknown() > before)
        copies = self.copies()
        self.assertEqual({name: count for name, count in copies.items() if count > 1}, {})
        held = self.unknown() - before
        self.assertGreaterEqual(len(copies) + held, senders * MAILS_EACH)
        self.assertGreater(held, 0, 'no kill met a mail: the test shows nothing')

    def test_doctor_sees_account_and_sandbox_and_sends_nothing(self):
        found = subprocess.run([MAILROOM, 'doctor'], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False).stdout
        self.assertIn('takes the credentials AKIDEXAMPLE', found)
        self.assertIn('the account is in the sandbox', found)
        self.assertIn('has sent 7 mails of 200', found)
        self.assertNotIn(SECRET, found)
        self.assertEqual(self.store(), [])

    def test_a_mail_for_trial_shows_the_id_that_ses_gave_it(self):
        said = run(MAILROOM, 'send', '--to', 'me@app.example', env={**os.environ, 'MAILROOM_SEND_LINK': 'https://app.example/{token}'})
        self.assertIn(f'accepted by 127.0.0.1:{self.port}: 200 ', said)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
