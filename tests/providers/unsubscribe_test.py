#!/usr/bin/python3
"""unsubscribe_test.py MAILROOM: unsubscribes by the links of captured mails, as mail programs, people and whoever guesses links would do.
Needs a PostgreSQL in PGHOST and PGUSER.
"""

import email
import email.policy
import glob
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, '..', 'support'))
from own_database import OwnDatabase  # noqa: E402

MAILROOM = sys.argv[1]
OLD_KEY = 'cd' * 32
LINK = 'http://127.0.0.1:8088/mail/u/'
ONE_CLICK = b'List-Unsubscribe=One-Click'


class UnsubscribeTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name
        self.database = OwnDatabase('unsubscribe_test')
        self.database.create(MAILROOM, MAILROOM_SECRET_KEY='ab' * 32, MAILROOM_SEND_FROM='no-reply@app.example',
                             MAILROOM_SEND_UNSUBSCRIBE_LINK=LINK + '{token}', MAILROOM_SEND_UNSUBSCRIBE_MAILTO='off+{id}@app.example')
        self.addCleanup(self.database.drop)
        self.database.psql("""SELECT mailroom_create_topic('news', 'Monthly <news>', '{"de": "Neues im Monat"}'),
                                     mailroom_create_topic('offers', 'Offers')""")
        self.start()

    def start(self, **environment):
        self.reader = subprocess.Popen([MAILROOM, 'bounce', '--listen', '127.0.0.1:0'], text=True, stderr=subprocess.PIPE,
                                       env={**os.environ, **environment})
        self.addCleanup(self.stop)
        self.url = 'http://' + re.search(r'127\.0\.0\.1:\d+', self.reader.stderr.readline())[0]
        while self.ask('u' + 'A' * 32)[0] == 503:  # it has no database yet
            pass

    def stop(self):
        """What it has logged, if it was running."""
        if self.reader.poll() is not None:
            return ''
        self.reader.terminate()
        return self.reader.communicate()[1]

    def mail(self, address, topic="'news'", locale='NULL', **environment):
        """Mails a message, and returns it as it was captured; None if it did not leave."""
        self.database.psql(f"SELECT mailroom_send(ARRAY['{address}'], subject => 'x', text => 'y', topic => {topic}, locale => {locale})")
        captured = os.path.join(self.directory, 'mails')
        before = set(glob.glob(captured + '/new/*'))
        subprocess.run([MAILROOM, 'send', '--once', '--capture', captured], check=True, capture_output=True, env={**os.environ, **environment})
        made = set(glob.glob(captured + '/new/*')) - before
        if not made:
            return None
        with open(made.pop(), 'rb') as file:
            return email.message_from_binary_file(file, policy=email.policy.SMTP)

    @staticmethod
    def text_of(mail):
        """The part of its link that nobody can make."""
        return re.search('<' + re.escape(LINK) + '([^>]+)>', mail['List-Unsubscribe'])[1]

    def ask(self, text, method='GET', body=None, **headers):
        headers = {name.replace('_', '-'): value for name, value in headers.items()}
        request = urllib.request.Request(self.url + '/any/path/' + text, body, headers, method=method)
        try:
            with urllib.request.urlopen(request) as answer:
                return answer.status, answer.headers, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.headers, error.read().decode()

    def post(self, text, body=ONE_CLICK, **headers):
        return self.ask(text, 'POST', body, **headers)

    def suppressed(self):
        return self.database.psql("SELECT coalesce(string_agg(concat_ws(' ', address, topic, kind), ', ' ORDER BY address, topic), '') "
                                  'FROM mailroom_suppressions').strip()

    def test_one_click_stops_the_topic_alone_and_says_nothing_of_whom(self):
        mail = self.mail('ada@mail.example')
        self.assertEqual(mail['List-Unsubscribe-Post'], 'List-Unsubscribe=One-Click')
        self.assertRegex(mail['List-Unsubscribe'], r', <mailto:off\+1-[a-z2-7]{10}@app\.example\?subject=unsubscribe>$')
        text = self.text_of(mail)
        for body, kind in ((ONE_CLICK, 'application/x-www-form-urlencoded'),
                           (b'--b\r\nContent-Disposition: form-data; name="List-Unsubscribe"\r\n\r\nOne-Click\r\n--b--\r\n',
                            'multipart/form-data; boundary=b')):
            status, headers, page = self.post(text, body, Content_Type=kind)
            self.assertEqual(status, 200)
            self.assertIsNone(headers['Set-Cookie'])
            self.assertIsNone(headers['Location'])
            self.assertNotIn('ada', page)
        self.assertEqual(self.suppressed(), 'ada@mail.example news unsubscribed')
        self.assertEqual(self.database.psql('SELECT count(*) FROM mailroom_bounces').strip(), '1')
        self.assertIsNone(self.mail('ada@mail.example'))
        self.assertIsNotNone(self.mail('ada@mail.example', "'offers'"))
        plain = self.mail('ada@mail.example', 'NULL')
        self.assertIsNone(plain['List-Unsubscribe'])
        log = self.stop()
        self.assertNotIn('ada', log)
        self.assertNotIn(text, log)

    def test_what_only_looks_changes_nothing(self):
        text = self.text_of(self.mail('ada@mail.example'))
        status, headers, page = self.ask(text, Accept_Language='fr;q=0.5, de-AT')
        self.assertEqual(status, 200)
        self.assertIn('<html lang="de">', page)
        self.assertIn('Neues im Monat', page)
        self.assertEqual(page.count('<button'), 1)
        self.assertIn("default-src 'none'", headers['Content-Security-Policy'])
        self.assertIn('Monthly &lt;news&gt;', self.ask(text)[2])
        for method in ('HEAD', 'PUT', 'DELETE', 'OPTIONS'):
            self.assertEqual(self.ask(text, method)[0], 405)
        for body in (b'', b'x=y', b'List-Unsubscribe=', b'\xff\0&=&==%zz'):
            self.assertEqual(self.post(text, body)[0], 400)
        self.assertEqual(self.post(text, b'x' * (20 << 10))[0], 413)
        self.assertEqual(self.suppressed(), '')

    def test_a_link_that_is_not_ours_is_answered_alike_and_not_for_ever(self):
        text = self.text_of(self.mail('ada@mail.example'))
        forged = [text[:-1] + ('A' if text[-1] != 'A' else 'E'), 'u' + 'A' * 32, 'p' + text[2:] + 'A', text[0] + text[1:][::-1]]
        answers = {self.ask(each)[0::2] for each in forged + [text[:-1], text[:10], 'u', '']}
        self.assertEqual(answers, {(404, 'This link is not valid.\n')})
        statuses = [self.post(forged[0])[0] for _ in range(100)]
        self.assertEqual(statuses[:50], [404] * 50)
        self.assertEqual(statuses[-1], 429)
        # Whoever has a link is not held up by others, nor by clients behind the same proxy.
        self.assertEqual(self.post(forged[0], X_Forwarded_For='192.0.2.7')[0], 404)
        self.assertEqual(self.suppressed(), '')
        self.assertEqual(self.post(text)[0], 200)

    def test_links_of_an_old_key_work_as_long_as_it_is_known(self):
        text = self.text_of(self.mail('ada@mail.example', MAILROOM_SECRET_KEY=OLD_KEY))
        self.assertEqual(self.post(text)[0], 404)
        self.stop()
        self.start(MAILROOM_PREVIOUS_SECRET_KEYS=OLD_KEY)
        self.assertEqual(self.post(text)[0], 200)
        self.assertEqual(self.suppressed(), 'ada@mail.example news unsubscribed')

    def test_a_reader_chooses_topics_in_a_page(self):
        text = self.text_of(self.mail('ada@mail.example', locale="'de'"))
        page = self.ask(text)[2]
        link = re.search('href="(p[^"]+)"', page)[1]
        status, _, page = self.ask(link)
        self.assertEqual(status, 200)
        self.assertEqual(re.findall('name="on" value="([a-z]+)"( checked)?', page), [('news', ' checked'), ('offers', ' checked')])
        save = lambda on, shown=('news', 'offers'): self.post(link, urllib.parse.urlencode(  # noqa: E731
            [('shown', each) for each in shown] + [('on', each) for each in on]).encode())[0]
        self.assertEqual(save(['news']), 200)
        self.assertEqual(self.suppressed(), 'ada@mail.example offers unsubscribed')
        self.assertEqual(save(['offers', "x'y", 'other']), 200)
        self.assertEqual(self.suppressed(), 'ada@mail.example news unsubscribed')
        self.assertEqual(save([], ['offers']), 200)
        self.assertEqual(self.suppressed(), 'ada@mail.example news unsubscribed, ada@mail.example offers unsubscribed')
        self.assertEqual(save(['news', 'offers']), 200)
        self.assertEqual(self.suppressed(), '')
        self.assertEqual(save([], []), 400)

    def test_a_mail_to_the_address_unsubscribes_but_no_automatic_reply(self):
        mail = self.mail('ada@mail.example')
        address = re.search('mailto:([^?]+)', mail['List-Unsubscribe'])[1]
        read = lambda text: subprocess.run([MAILROOM, 'bounce'], input=text, text=True, check=True, capture_output=True).stdout  # noqa: E731
        self.assertIn('auto_reply', read(f'From: ada@mail.example\nTo: {address}\nSubject: away\nAuto-Submitted: auto-replied\n\nx\n'))
        self.assertEqual(self.suppressed(), '')
        self.assertEqual(read(f'From: other@mail.example\nTo: {address.upper()}\nSubject: unsubscribe\n\n\n'),
                         'token 1 of queue mailroom, ada@mail.example: unsubscribed; the address is suppressed\n')
        self.assertEqual(self.suppressed(), 'ada@mail.example news unsubscribed')

    def headers_at(self, relay, settings):
        """The two of a mail, as a stand-in for this provider gets them."""
        directory = os.path.join(self.directory, relay[:3])
        os.mkdir(directory)
        server = subprocess.Popen([sys.executable, os.path.join(HERE, '..', 'handover', 'provider_server.py'), directory, 'ok'])
        try:
            port = os.path.join(directory, 'port')
            while not os.path.exists(port) or not os.path.getsize(port):
                time.sleep(0.02)
            with open(port, encoding='ascii') as file:
                url = f'http://127.0.0.1:{file.read().strip()}'
            self.database.psql("SELECT mailroom_send(ARRAY['ada@mail.example'], subject => 'x', text => 'y', topic => 'news')")
            subprocess.run([MAILROOM, 'send', '--once'], check=True, capture_output=True,
                           env={**os.environ, 'MAILROOM_SEND_RELAY': relay, **{name: value or url for name, value in settings.items()}})
        finally:
            server.kill()
            server.wait()
        with open(os.path.join(directory, 'taken'), encoding='utf-8') as file:
            mail = json.loads(file.read())
        taken = mail['body'].get('headers') or email.message_from_string(mail['mail'], policy=email.policy.SMTP)
        return taken['List-Unsubscribe'], taken['List-Unsubscribe-Post']

    def test_both_headers_go_to_ses_and_resend(self):
        key = os.path.join(self.directory, 'key')
        with open(os.open(key, os.O_WRONLY | os.O_CREAT, 0o600), 'w', encoding='ascii') as file:
            file.write('[default]\naws_access_key_id = AKIDEXAMPLE\naws_secret_access_key = geheim\n')
        with open(os.open(key + '.resend', os.O_WRONLY | os.O_CREAT, 0o600), 'w', encoding='ascii') as file:
            file.write('re_geheim\n')
        for relay, settings in (('ses://eu-west-1', {'MAILROOM_SEND_SES_ENDPOINT': '', 'MAILROOM_SEND_SES_CREDENTIALS_FILE': key}),
                                ('resend://', {'MAILROOM_SEND_RESEND_ENDPOINT': '', 'MAILROOM_SEND_RESEND_KEY_FILE': key + '.resend'})):
            with self.subTest(relay):
                links, post = self.headers_at(relay, settings)
                self.assertRegex(links, '^<' + re.escape(LINK) + r'[^>]{32,}>, <mailto:off\+\d+-[a-z2-7]{10}@app\.example\?subject=unsubscribe>$')
                self.assertEqual(post, 'List-Unsubscribe=One-Click')

    def test_a_mail_that_is_forgotten_has_no_link_any_more(self):
        text = self.text_of(self.mail('ada@mail.example'))
        subprocess.run([MAILROOM, 'message', 'forget', 'ada@mail.example', '--yes'], check=True, capture_output=True)
        self.assertEqual(self.ask(text)[0::2], (404, 'This link is not valid.\n'))
        self.assertEqual(self.post(text)[0], 404)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
