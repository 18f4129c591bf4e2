#!/usr/bin/python3
"""send_test.py SCRIPT MAILROOM: mails the tokens of a database through a real mail server, which scripts/with-postfix or
scripts/with-mailbox (SCRIPT) starts, and reads the mails with Python's parser. Needs a PostgreSQL in PGHOST and PGUSER.
"""

import json
import os
import re
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'support'))
from own_database import OwnDatabase, run  # noqa: E402

CHECK = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'check_maildir.py')
SCRIPT, MAILROOM = sys.argv[1], sys.argv[2]
DATABASE = OwnDatabase('send_test')
FROM = 'Exämple <no-reply@app.example>'

# Names that a mail must show as they are, and not do what they say.
ACCOUNTS = [
    ('plain@mail.example', 'plain'),
    ("o'brien+tag@mail.example", "o'brien"),
    ('html@mail.example', '<script>alert(1)</script>'),
    ('braces@mail.example', '{{token}} {{{link}}}'),
    ('umlaut@mail.example', 'Jürgen Groß'),
    ('right@mail.example', 'abc\u202edef'),
    ('long@mail.example', 'x' * 250),
    ('idn@bücher.example', 'idn'),
]
REFUSED = [
    ('a b@mail.example', 'blank'),
    ('"quoted@mail.example', 'quoted'),
    ('-oQ/tmp@mail.example', 'hyphen'),
    ('x>@mail.example', 'bracket'),
    ('nobody', 'nobody'),
]


def literal(text):
    return "'" + text.replace("'", "''") + "'"


def token_in(link):
    return re.fullmatch(r'https://app\.example/(activation|recovery)\?token=([A-Za-z0-9_-]{86})', link)[2]


class SendTest(unittest.TestCase):
    """Each test reads what one run has delivered."""

    @classmethod
    def setUpClass(cls):
        DATABASE.create(MAILROOM, MAILROOM_SECRET_KEY='ab' * 32, MAILROOM_SEND_RELAY=os.environ['MAILROOM_TEST_RELAY'],
                        MAILROOM_SEND_FROM=FROM, MAILROOM_SEND_LINK='https://app.example/{action}?token={token}')
        for email, login in ACCOUNTS + REFUSED:
            DATABASE.psql(f'INSERT INTO accounts (email, login) VALUES ({literal(email)}, {literal(login)})')
        run(MAILROOM, 'send', '--once')
        output = run(CHECK, '--wait-for', str(len(ACCOUNTS)), os.environ['MAILROOM_TEST_MAILDIR'])
        cls.by_token = {mail['message_id'].split('.')[2]: mail for mail in map(json.loads, output.splitlines())}

    @classmethod
    def tearDownClass(cls):
        DATABASE.drop()

    def test_each_account_gets_one_mail_without_a_defect(self):
        self.assertEqual(len(self.by_token), len(ACCOUNTS))
        for mail in self.by_token.values():
            self.assertEqual(mail['defects'], [])
            self.assertEqual(mail['from'], FROM)
            self.assertEqual(mail['envelope_from'], 'no-reply@app.example')
            self.assertIsNotNone(mail['html'])
            self.assertNotIn('<script', mail['html'])

    def test_the_token_of_each_link_verifies(self):
        for token, mail in self.by_token.items():
            links = {token_in(link) for link in mail['links']}
            self.assertEqual(len(links), 1)
            found = json.loads(run(MAILROOM, '-o', 'json', 'verify', links.pop()))
            self.assertEqual(str(found['token']['id']), token)

    def test_a_login_is_shown_as_it_is(self):
        logins = dict(line.split('\t') for line in DATABASE.psql(
            'SELECT t.id, a.login FROM tokens t JOIN accounts a ON a.id = t.account').splitlines())
        for token, mail in self.by_token.items():
            # Lines of a mail may be folded at blanks.
            self.assertIn(re.sub(r'\s+', '', logins[token]), re.sub(r'\s+', '', mail['text']))

    def test_the_records_agree_with_the_server(self):
        rows = DATABASE.psql("SELECT token, code, reply FROM mailroom_deliveries WHERE state = 'accepted' ORDER BY token")
        recorded = dict((line.split('\t')[0], line.split('\t')[2]) for line in rows.splitlines())
        self.assertEqual(set(recorded), set(self.by_token))
        with open(os.environ['MAILROOM_TEST_MAILLOG'], encoding='utf-8') as file:
            log = file.read()
        for token, reply in recorded.items():
            queue_id = self.by_token[token]['queue_id']
            self.assertIn(queue_id, reply)
            self.assertRegex(log, rf'{queue_id}: .*status=sent')

    def test_an_address_that_cannot_be_mailed_is_rejected(self):
        rows = DATABASE.psql("SELECT a.login FROM mailroom_deliveries d JOIN tokens t ON t.id = d.token "
                    "JOIN accounts a ON a.id = t.account WHERE d.state = 'rejected' AND d.attempts = 0")
        self.assertEqual(sorted(rows.split()), sorted(login for _, login in REFUSED))

    def test_audit_shows_the_queue_id_of_the_server(self):
        mail = next(mail for mail in self.by_token.values() if mail['envelope_to'] == 'plain@mail.example')
        self.assertIn(mail['queue_id'], run(MAILROOM, 'audit', 'plain'))

    def test_a_trial_mail_reaches_its_address(self):
        before = DATABASE.psql('SELECT count(*) FROM mailroom_batches')
        output = run(MAILROOM, 'send', '--to', 'me@test.example', '--account', 'plain', '--template', 'recovery')
        self.assertRegex(output, r'^accepted by 127\.0\.0\.1:\d+: 250 ')
        mails = [json.loads(line) for line in
                 run(CHECK, '--wait-for', str(len(ACCOUNTS) + 1), os.environ['MAILROOM_TEST_MAILDIR']).splitlines()]
        self.assertIn('me@test.example', [mail['envelope_to'] for mail in mails])
        self.assertEqual(DATABASE.psql('SELECT count(*) FROM mailroom_batches'), before)


if __name__ == '__main__':
    if os.path.basename(SCRIPT) == 'with-postfix' and os.geteuid() != 0:
        sys.exit(print('NOT RUN: only root can start a Postfix'))
    if 'MAILROOM_TEST_RELAY' not in os.environ:
        os.execv(SCRIPT, [SCRIPT, '--', sys.executable, *sys.argv])
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
