#!/usr/bin/python3
"""bounce_sqs_test.py MAILROOM: reads events of Amazon SES from a queue of npm's fauxqs, which stands in for SQS. Needs a PostgreSQL in PGHOST
and PGUSER, and the modules that scripts/install-packages --tests installs.
"""

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
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, '..', 'support'))
from free_port import free_port  # noqa: E402
from own_database import OwnDatabase  # noqa: E402

MAILROOM = sys.argv[1]
MODULES = '/usr/local/share/mailroom-tests/providers'
SECRET = 'geheimgeheimgeheim'


def bounce(number, sent_at='2026-01-01T00:00:00.000Z'):
    return {'eventType': 'Bounce',
            'mail': {'messageId': f'id-{number}', 'timestamp': sent_at, 'tags': {'queue': ['mailroom'], 'token': [str(number)]}},
            'bounce': {'bounceType': 'Permanent', 'bounceSubType': 'General',
                       'bouncedRecipients': [{'emailAddress': f'a{number}@mail.example', 'action': 'failed', 'status': '5.1.1',
                                              'diagnosticCode': 'smtp; 550 5.1.1 user unknown'}]}}


PATIENCE = 60  # seconds


class BounceSqsTest(unittest.TestCase):
    def setUp(self):
        port = free_port()
        self.endpoint = f'http://127.0.0.1:{port}/'
        self.queue = f'{self.endpoint}000000000000/events'
        server = subprocess.Popen(['node', os.path.join(HERE, 'sqs_server.mjs'), MODULES, str(port), 'events'], stdin=subprocess.PIPE)
        self.addCleanup(server.wait)
        self.addCleanup(server.stdin.close)
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        credentials = os.path.join(directory.name, 'credentials')
        with open(os.open(credentials, os.O_WRONLY | os.O_CREAT, 0o600), 'w', encoding='ascii') as file:
            file.write(f'aws_access_key_id = AKIATEST\naws_secret_access_key = {SECRET}\n')
        self.database = OwnDatabase('bounce_sqs_test')
        self.database.create(MAILROOM, MAILROOM_SECRET_KEY='ab' * 32, MAILROOM_SEND_SES_CREDENTIALS_FILE=credentials)
        self.addCleanup(self.database.drop)
        for _ in range(300):
            try:
                self.ask('GetQueueAttributes', AttributeNames=['All'])
                break
            except urllib.error.URLError:
                time.sleep(0.1)

    def ask(self, action, **members):
        authorization = 'AWS4-HMAC-SHA256 Credential=AKIATEST/20260101/us-east-1/sqs/aws4_request, SignedHeaders=host, Signature=0'
        request = urllib.request.Request(self.endpoint, json.dumps({'QueueUrl': self.queue, **members}).encode(),
                                         {'X-Amz-Target': f'AmazonSQS.{action}', 'Content-Type': 'application/x-amz-json-1.0',
                                          'Authorization': authorization})
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    def put(self, message):
        self.ask('SendMessage', MessageBody=message if isinstance(message, str) else json.dumps(message))

    def left(self):
        names = ['ApproximateNumberOfMessages', 'ApproximateNumberOfMessagesNotVisible']
        return sum(int(value) for value in self.ask('GetQueueAttributes', AttributeNames=names)['Attributes'].values())

    def mails(self, count):
        self.database.psql(f"""INSERT INTO mailroom_deliveries (queue, token, state, batch, reply, address, accepted_at)
            SELECT 'mailroom', n, 'accepted', 1, 'id-' || n, 'a' || n || '@mail.example', now() FROM generate_series(1, {count}) n""")

    def counts(self):
        return self.database.psql('SELECT count(*), count(token), (SELECT count(*) FROM mailroom_suppressions) FROM mailroom_bounces').split()

    def read(self):
        return subprocess.run([MAILROOM, 'bounce', '--sqs', self.queue, '--once'], check=True, text=True, stderr=subprocess.PIPE).stderr

    def read_all(self):
        """Until nothing is left, also of what a reader has received and not deleted: the queue shows that again after a second."""
        for _ in range(PATIENCE * 5):
            self.read()
            if self.left() == 0:
                return
            time.sleep(0.2)
        self.fail(f'{self.left()} messages are left')

    def test_events_are_recorded_once_and_deleted(self):
        self.mails(25)
        for number in range(1, 26):
            self.put(bounce(number))
            self.put({'Type': 'Notification', 'Message': json.dumps(bounce(number))})
        self.put({'eventType': 'Click', 'mail': {}})
        self.put('no event')
        log = self.read()
        self.assertEqual(self.counts(), ['25', '25', '25'])
        self.assertEqual(self.left(), 0)
        self.assertNotIn(SECRET, log)

    def test_a_reader_that_is_killed_again_and_again_loses_nothing(self):
        self.mails(2000)
        events = cut_off = 0
        for _ in range(20):
            for events in range(events + 1, events + 101):
                self.put(bounce(events))
            before = int(self.counts()[0])
            reader = subprocess.Popen([MAILROOM, 'bounce', '--sqs', self.queue], stderr=subprocess.DEVNULL)
            while int(self.counts()[0]) == before:
                self.assertIsNone(reader.poll())
            reader.kill()
            reader.wait()
            cut_off += int(self.counts()[0]) < events
            if cut_off == 5:
                break
        self.assertEqual(cut_off, 5, 'too few kills met an event')
        self.read_all()
        self.assertEqual(self.counts(), [str(events)] * 3)

    def test_an_event_before_its_mail_is_on_record_stays(self):
        self.put(bounce(1, time.strftime('%Y-%m-%dT%H:%M:%S.000Z', time.gmtime())))
        self.put(bounce(2))
        self.read()
        self.assertEqual(self.counts(), ['2', '0', '0'])
        self.assertEqual(self.left(), 1)
        self.mails(1)
        self.read_all()
        self.assertEqual(self.counts(), ['2', '1', '1'])

    def test_a_queue_that_is_none_is_said(self):
        for url, words in [(self.queue + '-2', 'ReceiveMessage of 127.0.0.1:'), ('https://evil.example/1/q', 'no host of Amazon SQS'),
                           ('http://evil.example/1/q', 'http:// to another host'), ('q', 'no URL of a queue')]:
            run = subprocess.run([MAILROOM, 'bounce', '--sqs', url, '--once'], text=True, stderr=subprocess.PIPE)
            self.assertNotEqual(run.returncode, 0)
            self.assertIn(words, run.stderr)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
