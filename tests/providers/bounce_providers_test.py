#!/usr/bin/python3
"""bounce_providers_test.py MAILROOM: posts events of six providers and of scripts to `mailroom bounce --listen`, signed as each provider does,
by openssl and by Python's hmac. Needs a PostgreSQL in PGHOST and PGUSER.
"""

import base64
import hashlib
import hmac
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
KEY = 'ab' * 32
SECRETS = {name: f'{name}-secret-0123456789' for name in ('postmark', 'mailgun', 'brevo', 'mailjet', 'sparkpost', 'report')}
BY_SECRET = ('postmark', 'brevo', 'mailjet', 'sparkpost', 'report')


class Rig(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name
        settings = {f'MAILROOM_BOUNCE_{name.upper()}_SECRET_FILES': self.file(name, secret) for name, secret in SECRETS.items()}
        self.private = os.path.join(self.directory, 'sendgrid.pem')
        self.openssl('ecparam', '-name', 'prime256v1', '-genkey', '-noout', '-out', self.private)
        public = self.openssl('ec', '-in', self.private, '-pubout', '-outform', 'DER')
        settings['MAILROOM_BOUNCE_SENDGRID_KEY_FILES'] = self.file('sendgrid-key', base64.b64encode(public).decode())
        self.database = OwnDatabase('bounce_providers_test')
        self.database.create(MAILROOM, MAILROOM_SECRET_KEY=KEY, **settings, **self.more())
        self.addCleanup(self.database.drop)
        self.home = self.database.psql('SELECT mailroom_home_name()').strip()
        self.reader = subprocess.Popen([MAILROOM, 'bounce', '--listen', '127.0.0.1:0'], text=True, stderr=subprocess.PIPE)
        self.addCleanup(self.stop)
        self.url = 'http://' + re.search(r'127\.0\.0\.1:\d+', self.reader.stderr.readline())[0]

    @staticmethod
    def more():
        return {}

    def file(self, name, text):
        path = os.path.join(self.directory, name)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), 'w', encoding='ascii') as file:
            file.write(text + '\n')
        return path

    @staticmethod
    def openssl(*words, **more):
        return subprocess.run(['openssl', *words], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, **more).stdout

    def stop(self):
        if self.reader.poll() is not None:
            return ''
        self.reader.terminate()
        return self.reader.communicate()[1]

    def mail(self, address):
        """A mail that a relay has taken. Returns its token and the id that its header had."""
        token = int(self.database.psql(f"""
            WITH message AS (SELECT mailroom_send(ARRAY['{address}'], subject => 'x', text => 'y') AS id)
            INSERT INTO mailroom_deliveries (queue, token, state, batch, reply, address, accepted_at)
            SELECT 'mailroom', (SELECT coalesce(max(token), 0) + 1 FROM mailroom_deliveries), 'accepted', 1, '250 ok', '{address}', now()
            FROM message RETURNING token"""))
        digest = hmac.new(bytes.fromhex(KEY), f'mailroom bounce {token} {self.home}'.encode(), hashlib.sha256).digest()
        return token, f'{token}-{base64.b32encode(digest)[:10].decode().lower()}'

    def recorded(self):
        return self.database.psql("SELECT coalesce(string_agg(concat_ws(' ', token, kind, reason), ', ' ORDER BY id), '') FROM mailroom_bounces").strip()

    def suppressed(self):
        return self.database.psql("SELECT coalesce(string_agg(concat_ws(' ', address, kind), ', ' ORDER BY address), '') FROM mailroom_suppressions").strip()

    def ask(self, body, path='/', **headers):
        request = urllib.request.Request(self.url + path, body if isinstance(body, bytes) else json.dumps(body).encode(),
                                         {name.replace('_', '-'): value for name, value in headers.items()})
        try:
            with urllib.request.urlopen(request) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def post(self, provider, event, wrong=False, seconds=None):
        """Posts as the provider does. Returns the status."""
        seconds = int(time.time()) if seconds is None else seconds
        if provider == 'mailgun':
            return self.ask({**event, 'signature': self.mailgun_signature(seconds, os.urandom(25).hex(), 'x' if wrong else SECRETS[provider])})[0]
        if provider == 'sendgrid':
            body = json.dumps(event).encode() + b'\r\n'
            signature = base64.b64encode(self.openssl('dgst', '-sha256', '-sign', self.private, input=str(seconds).encode() + body)).decode()
            return self.ask(body + (b' ' if wrong else b''), X_Twilio_Email_Event_Webhook_Signature=signature,
                            X_Twilio_Email_Event_Webhook_Timestamp=str(seconds))[0]
        login = base64.b64encode(f'mailroom:{"x" if wrong else ""}{SECRETS[provider]}'.encode()).decode()
        return self.ask(event, Authorization=f'Basic {login}')[0]

    @staticmethod
    def mailgun_signature(seconds, token, key):
        signature = hmac.new(key.encode(), f'{seconds}{token}'.encode(), hashlib.sha256).hexdigest()
        return {'timestamp': str(seconds), 'token': token, 'signature': signature}


def hard_bounce(provider, address, id, number):
    """What the provider says of a mailbox that does not exist."""
    now = int(time.time()) - 3600
    reply = '550 5.1.1 user unknown'
    return {
        'postmark': {'RecordType': 'Bounce', 'ID': number, 'Type': 'HardBounce', 'MessageID': f'message-{number}', 'Details': 'smtp;' + reply,
                     'Email': address, 'BouncedAt': '2026-11-27T16:28:50.3963933-04:00', 'Metadata': {'mailroom': id}},
        'mailgun': {'event-data': {'event': 'failed', 'severity': 'permanent', 'reason': 'bounce', 'id': f'event-{number}', 'timestamp': now + 0.5,
                                   'recipient': address, 'user-variables': {'mailroom': id},
                                   'delivery-status': {'code': 550, 'message': '5.1.1 user unknown'}}},
        'sendgrid': [{'event': 'bounce', 'type': 'bounce', 'email': address, 'timestamp': now, 'sg_event_id': f'event-{number}',
                      'sg_message_id': f'message-{number}', 'reason': reply, 'status': '5.1.1', 'mailroom': id}],
        'brevo': {'event': 'hard_bounce', 'email': address, 'message-id': f'<{number}@smtp-relay.mailin.fr>', 'ts_event': now, 'reason': reply,
                  'X-Mailin-custom': json.dumps({'mailroom': id})},
        'mailjet': [{'event': 'bounce', 'time': now, 'MessageID': number, 'email': address, 'hard_bounce': True, 'error': 'user unknown',
                     'CustomID': id}],
        'sparkpost': [{'msys': {'message_event': {'type': 'bounce', 'bounce_class': '10', 'event_id': str(number), 'raw_rcpt_to': address,
                                                  'raw_reason': reply, 'timestamp': str(now), 'rcpt_meta': {'mailroom': id}}}}],
        'report': {'address': address, 'kind': 'hard', 'reason': reply, 'token': id, 'at': now}}[provider]


PROVIDERS = ('postmark', 'mailgun', 'sendgrid', 'brevo', 'mailjet', 'sparkpost', 'report')


class BounceProvidersTest(Rig):
    def test_an_event_with_the_right_proof_is_recorded_once_and_no_other_is(self):
        for number, provider in enumerate(PROVIDERS, 1):
            with self.subTest(provider):
                token, id = self.mail(f'{provider}@mail.example')
                event = hard_bounce(provider, f'{provider}@mail.example', id, number)
                before = self.recorded()
                self.assertEqual(self.post(provider, event, wrong=True), 401)
                self.assertEqual(self.ask(event)[0], 401)
                self.assertEqual(self.recorded(), before)
                self.assertEqual([self.post(provider, event), self.post(provider, event)], [200, 200])
                self.assertEqual(self.recorded(), (before + ', ' if before else '') + f'{token} hard user_unknown')
                self.assertIn(f'{provider}@mail.example bounce', self.suppressed())
        log = self.stop()
        for secret in SECRETS.values():
            self.assertNotIn(secret, log)
        self.assertIn('refused requests count=14', log)

    def test_an_old_signature_is_refused(self):
        _, id = self.mail('ada@mail.example')
        now = int(time.time())
        for provider in ('mailgun', 'sendgrid'):
            event = hard_bounce(provider, 'ada@mail.example', id, 1)
            self.assertEqual(self.post(provider, event, seconds=now - 3600), 401)
            self.assertEqual(self.post(provider, event, seconds=now + 3600), 401)
        self.assertEqual(self.recorded(), '')

    def test_a_token_of_mailgun_is_good_for_one_event(self):
        _, id = self.mail('ada@mail.example')
        _, other = self.mail('bob@mail.example')
        signature = self.mailgun_signature(int(time.time()), 'a' * 50, SECRETS['mailgun'])
        event = hard_bounce('mailgun', 'ada@mail.example', id, 1)
        forged = hard_bounce('mailgun', 'bob@mail.example', other, 2)
        self.assertEqual(self.ask({**event, 'signature': signature})[0], 200)
        self.assertEqual(self.ask({**event, 'signature': signature})[0], 200)
        self.assertEqual(self.ask({**forged, 'signature': signature})[0], 401)
        self.assertEqual(self.suppressed(), 'ada@mail.example bounce')

    def test_a_secret_may_be_in_the_path_the_query_or_a_bearer_token(self):
        _, id = self.mail('ada@mail.example')
        event = hard_bounce('postmark', 'ada@mail.example', id, 1)
        secret = SECRETS['postmark']
        for path, headers, expected in ((f'/events/{secret}', {}, 200), (f'/events?key={secret}', {}, 200), ('/', {'Authorization': f'Bearer {secret}'}, 200),
                                        (f'/{secret}x', {}, 401), (f'/?key={secret[:-1]}', {}, 401), ('/', {'Authorization': f'Digest {secret}'}, 401)):
            with self.subTest(path=path, headers=headers):
                self.assertEqual(self.ask(event, path, **headers)[0], expected)

    def test_a_secret_is_for_the_events_of_its_provider_alone(self):
        _, id = self.mail('ada@mail.example')
        for own in BY_SECRET:
            for other in PROVIDERS:
                if own != other:
                    self.assertEqual(self.post(own, hard_bounce(other, 'ada@mail.example', id, 1)), 400, (own, other))
        self.assertEqual(self.recorded(), '')

    def test_a_batch_is_recorded_whole_or_not_at_all(self):
        _, ada = self.mail('ada@mail.example')
        _, bob = self.mail('bob@mail.example')
        batch = hard_bounce('sendgrid', 'ada@mail.example', ada, 1) + hard_bounce('sendgrid', 'bob@mail.example', bob, 2)
        self.assertEqual(self.post('sendgrid', batch + [{'event': 'bounce'}]), 400)
        self.assertEqual(self.recorded(), '')
        name = self.database.name
        self.database.psql(f'ALTER DATABASE {name} ALLOW_CONNECTIONS false', database='postgres')
        self.database.psql(f"SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = '{name}'", database='postgres')
        self.assertEqual(self.post('sendgrid', batch), 503)
        self.database.psql(f'ALTER DATABASE {name} ALLOW_CONNECTIONS true', database='postgres')
        for _ in range(100):
            if (status := self.post('sendgrid', batch)) == 200:
                break
            self.assertEqual(status, 503)
            time.sleep(0.1)
        self.assertEqual(self.recorded(), '1 hard user_unknown, 2 hard user_unknown')
        # A kind that is not known keeps nobody from the others, and is told by name.
        _, eve = self.mail('eve@mail.example')
        strange = [{'event': 'strange', 'sg_event_id': 'event-9', 'email': 'eve@mail.example'}]
        self.assertEqual(self.post('sendgrid', strange + hard_bounce('sendgrid', 'eve@mail.example', eve, 3)), 200)
        self.assertTrue(self.recorded().endswith('3 hard user_unknown'))
        self.assertIn('SendGrid strange', self.stop())

    def test_an_id_proves_one_copy_and_nothing_of_another_address(self):
        _, id = self.mail('ada@mail.example')
        self.mail('bob@mail.example')
        self.assertEqual(self.post('brevo', hard_bounce('brevo', 'bob@mail.example', id, 1)), 200)
        self.assertEqual(self.post('mailjet', hard_bounce('mailjet', 'ada@mail.example', id[:-1] + ('b' if id[-1] == 'a' else 'a'), 2)), 200)
        self.assertEqual(self.suppressed(), '')
        self.assertEqual(self.recorded(), '1 hard user_unknown, hard user_unknown')

    def test_an_event_before_its_mail_is_on_record_is_asked_for_again(self):
        digest = hmac.new(bytes.fromhex(KEY), f'mailroom bounce 1 {self.home}'.encode(), hashlib.sha256).digest()
        event = hard_bounce('sparkpost', 'ada@mail.example', f'1-{base64.b32encode(digest)[:10].decode().lower()}', 1)
        event[0]['msys']['message_event']['timestamp'] = str(int(time.time()))
        self.assertEqual(self.post('sparkpost', event), 503)
        self.mail('ada@mail.example')
        self.assertEqual(self.post('sparkpost', event), 200)
        self.assertEqual(self.recorded(), '1 hard user_unknown')
        # Another application mails by the same account.
        event[0]['msys']['message_event'].update(rcpt_meta={}, event_id='2')
        self.assertEqual(self.post('sparkpost', event), 200)

    def test_a_wish_for_no_more_mails_suppresses_and_is_no_bounce(self):
        _, id = self.mail('ada@mail.example')
        event = {'event': 'unsub', 'time': 1, 'MessageID': 7, 'email': 'ada@mail.example', 'CustomID': id}
        self.assertEqual(self.post('mailjet', event), 200)
        self.assertEqual(self.suppressed(), 'ada@mail.example unsubscribed')
        self.assertEqual(self.database.psql("SELECT mailroom_reported_outcome('unsubscribed') IS NULL").strip(), 't')

    def test_a_script_is_told_what_is_wrong(self):
        path = '/' + SECRETS['report']
        self.assertEqual(self.ask({'address': 'ada@mail.example', 'kind': 'hard'}, path), (400, 'it has neither message_id nor token\n'))
        self.assertEqual(self.ask(b'{', path), (400, 'it is no JSON\n'))
        token, _ = self.mail('ada@mail.example')
        self.assertEqual(self.ask([{'address': 'ada@mail.example', 'kind': 'soft', 'token': token}], path), (200, 'recorded\n'))


class WithBounceAddressTest(Rig):
    @staticmethod
    def more():
        return {'MAILROOM_SEND_BOUNCE_ADDRESS': 'bounce+{id}@app.example'}

    def test_where_ids_are_set_nothing_without_one_suppresses(self):
        token, id = self.mail('ada@mail.example')
        key = self.database.psql(f"""SELECT mailroom_mail_key(t.secret, t.message, m.created_at, (SELECT oid FROM mailroom_this_database()), NULL)
            FROM tokens t JOIN mailroom_messages m ON m.id = t.message WHERE t.id = {token}""").strip()
        event = hard_bounce('mailgun', 'ada@mail.example', '', 1)
        event['event-data']['message'] = {'headers': {'message-id': f'mailroom.{key}.{token}.mailroom@app.example'}}
        self.assertEqual(self.post('mailgun', event), 200)
        self.assertEqual([self.recorded(), self.suppressed()], [f'{token} hard user_unknown', ''])
        self.assertEqual(self.post('mailgun', hard_bounce('mailgun', 'ada@mail.example', id, 2)), 200)
        self.assertEqual(self.suppressed(), 'ada@mail.example bounce')


class StartTest(unittest.TestCase):
    def start(self, **settings):
        own = {name: value for name, value in os.environ.items() if not name.startswith('MAILROOM_')}
        environment = {**own, 'MAILROOM_DATABASE_URL': 'host=/nowhere', 'MAILROOM_SECRET_KEY': KEY, **settings}
        return subprocess.run([MAILROOM, 'bounce', '--listen', '127.0.0.1:0'], env=environment, text=True, capture_output=True, timeout=60)

    def test_without_a_secret_it_does_not_start(self):
        run = self.start()
        self.assertEqual(run.returncode, 3, run.stderr)
        self.assertIn('no provider may post events', run.stderr)

    def test_a_secret_that_cannot_be_one_is_refused(self):
        with tempfile.TemporaryDirectory() as directory:
            def file(name, text):
                path = os.path.join(directory, name)
                with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), 'w', encoding='ascii') as out:
                    out.write(text)
                return path
            good = file('good', 'x' * 16)
            for settings, words in (({'MAILROOM_BOUNCE_BREVO_SECRET_FILES': file('short', 'x' * 15)}, 'printable characters without blanks'),
                                    ({'MAILROOM_BOUNCE_MAILGUN_SECRET_FILES': file('empty', '')}, 'printable characters without blanks'),
                                    ({'MAILROOM_BOUNCE_SENDGRID_KEY_FILES': good}, 'no public key of ECDSA over P-256'),
                                    ({'MAILROOM_BOUNCE_BREVO_SECRET_FILES': good, 'MAILROOM_BOUNCE_MAILJET_SECRET_FILES': good}, 'have the same secret')):
                run = self.start(**settings)
                self.assertEqual(run.returncode, 3, run.stderr)
                self.assertIn(words, run.stderr)
                self.assertNotIn('xxxxxxxxxx', run.stderr)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
