#!/usr/bin/python3
"""desk_test.py MAILROOM: the desk over real sockets: who may sign in, what each role sees, what no other site can do, and what a hostile mail cannot. Needs the
PostgreSQL of with-postgres, which asks for passwords.
"""

import html
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.parse

sys.dont_write_bytecode = True
sys.path[:0] = [os.path.dirname(os.path.abspath(__file__))]
from submission_service import MAILROOM, PATIENCE, ask_for_passwords, run  # noqa: E402
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'support'))
from free_port import free_port  # noqa: E402
from own_database import OwnDatabase  # noqa: E402

HOSTILE = '<script>alert(1)</script><img src=x onerror=alert(2)>'


class Desk:
    """A `mailroom desk` at a port that is free."""

    def __init__(self, **settings):
        environment = dict(os.environ, **{'MAILROOM_DESK_LISTEN': '127.0.0.1:0', **settings})
        self.process = subprocess.Popen([MAILROOM, 'desk'], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        port = re.search(r':(\d+)/?$', settings.get('MAILROOM_DESK_LISTEN', line.strip()))
        self.port = int(port[1])

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        _, self.log = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode


class Browser:
    """As a browser sends requests; `headers` replace what it would say of itself."""

    def __init__(self, desk, host=None):
        self.desk, self.cookie = desk, None
        self.host = host or f'127.0.0.1:{desk.port}'
        self.origin = f'http://{self.host}'

    def ask(self, method, path, fields=None, **headers):
        connection = http.client.HTTPConnection('127.0.0.1', self.desk.port, timeout=PATIENCE)
        sent = {'Host': self.host}
        if self.cookie:
            sent['Cookie'] = self.cookie
        body = None
        if method == 'POST':
            body = urllib.parse.urlencode(fields or {})
            sent.update({'Content-Type': 'application/x-www-form-urlencoded', 'Origin': self.origin})
        sent.update({name.replace('_', '-'): value for name, value in headers.items()})
        connection.request(method, path, body, {name: value for name, value in sent.items() if value is not None})
        answer = connection.getresponse()
        answer.text = answer.read().decode()
        connection.close()
        set_cookie = answer.getheader('Set-Cookie')
        if set_cookie:
            self.cookie = set_cookie.split(';')[0]
        return answer

    def get(self, path, **headers):
        """Follows to other paths."""
        answer = self.ask('GET', path, **headers)
        while answer.status == 303:
            answer = self.ask('GET', answer.getheader('Location'), **headers)
        return answer

    def sign_in(self, role, password='secret', **headers):
        return self.ask('POST', '/sign-in', {'role': role, 'password': password, 'next': '/'}, **headers)

    def csrf(self, path='/'):
        return re.search(r'name="csrf" value="([^"]+)"', self.get(path).text)[1]

    def search(self, text):
        return self.get('/search?' + urllib.parse.urlencode({'q': text}))


class DeskTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.database = database = OwnDatabase('desk_test')
        database.create(MAILROOM, MAILROOM_SEND_FROM='Shop <shop@app.example>', MAILROOM_SECRET_KEY='ab' * 32,
                        MAILROOM_SEND_LINK='https://app.example/{action}?token={token}')
        database.make_roles(MAILROOM)
        cls.reader, cls.operator, cls.stranger = (f'{database.name}_{name}' for name in ('ada', 'bob', 'eve'))
        database.psql(f"""
            CREATE ROLE {cls.reader} LOGIN PASSWORD 'secret' IN ROLE {database.name}_reader;
            CREATE ROLE {cls.operator} LOGIN PASSWORD 'secret' IN ROLE {database.name}_operator;
            CREATE ROLE {cls.stranger} LOGIN PASSWORD 'secret' IN ROLE {database.name}_producer;
            CREATE ROLE {database.name}_trusted LOGIN PASSWORD 'secret' IN ROLE {database.name}_reader;
            CREATE ROLE {database.name}_root LOGIN SUPERUSER PASSWORD 'secret'""")
        ask_for_passwords(database, f'{database.name}_trusted')
        database.psql(f"""
            SELECT mailroom_send(ARRAY['ada@mail.example'], subject => 'Your order {HOSTILE}', text => 'It is on its way.',
                html => '<p>It is on its <b>way</b>. {HOSTILE}</p><a href="https://evil.example">here</a>', reference => 'order:17');
            SELECT mailroom_send(ARRAY['"{HOSTILE}" <late@mail.example>'], subject => 'Later', text => 'x', reference => '{HOSTILE}',
                send_after => now() + interval '1 day');
            SELECT mailroom_send(ARRAY['twice@mail.example'], subject => 'One', text => 'x');
            SELECT mailroom_send(ARRAY['twice@mail.example'], subject => 'Two', text => 'x');
            INSERT INTO accounts (email, login) VALUES ('user1@mail.example', 'user1')""")
        cls.directory = tempfile.TemporaryDirectory()
        run(MAILROOM, 'send', '--once', '-q', '--capture', f'{cls.directory.name}/mails')
        cls.desk = Desk()

    @classmethod
    def tearDownClass(cls):
        cls.desk.stop()
        cls.directory.cleanup()
        cls.database.drop()

    def signed_in(self, role):
        browser = Browser(self.desk)
        self.assertEqual(browser.sign_in(role).status, 303)
        return browser

    def message_of(self, reference):
        return int(self.database.psql(f"SELECT id FROM mailroom_messages WHERE reference = '{reference}'"))

    def test_nothing_is_shown_without_a_sign_in(self):
        message = self.message_of('order:17')
        for path in ('/', '/search?q=ada@mail.example', f'/message/{message}', f'/message/{message}/html', '/today', '/status', '/nowhere'):
            answer = Browser(self.desk).ask('GET', path)
            self.assertEqual((answer.status, answer.getheader('Location'), answer.text), (303, '/sign-in', ''), path)
        for cookie in ('mailroom_desk=', 'mailroom_desk=' + 'A' * 43, 'mailroom_desk'):
            browser = Browser(self.desk)
            browser.cookie = cookie
            self.assertEqual(browser.ask('GET', '/today').status, 303)

    def test_only_a_password_that_postgresql_asks_for_is_a_sign_in(self):
        for role, password, words in (
                (self.reader, 'wrong', 'The role or its password is wrong.'),
                ('nobody_at_all', 'secret', 'The role or its password is wrong.'),
                (self.reader, '', 'A role and its password are needed.'),
                (self.reader, 'secret\0', 'The role or its password is wrong.'),
                (f'{self.database.name}_trusted', 'secret', 'lets this role in without a password'),
                (f'{self.database.name}_root', 'secret', 'A superuser'),
                (self.stranger, 'secret', 'needs the rights of mailroom_reader')):
            browser = Browser(self.desk)
            answer = browser.sign_in(role, password, X_Forwarded_For='192.0.2.1')
            self.assertEqual((answer.status, answer.getheader('Set-Cookie')), (403, None), role)
            self.assertIn(words, html.unescape(answer.text))
            self.assertEqual(browser.ask('GET', '/today').status, 303)

    def test_wrong_passwords_are_counted_by_client(self):
        guesser = Browser(self.desk)
        delays = [guesser.sign_in(self.reader, 'guess', X_Forwarded_For='192.0.2.7').status for _ in range(3)]
        self.assertEqual(delays, [403, 403, 403])
        desk = Desk()
        try:
            statuses = []
            guesses = [threading.Thread(target=lambda: statuses.append(Browser(desk).sign_in(self.reader, 'guess').status)) for _ in range(14)]
            for guess in guesses:
                guess.start()
            for guess in guesses:
                guess.join()
            while 403 in statuses and statuses.count(403) < 10:
                statuses.append(Browser(desk).sign_in(self.reader, 'guess').status)
            self.assertEqual(Browser(desk).sign_in(self.reader, 'secret').status, 429)
            self.assertEqual(Browser(desk).sign_in(self.reader, 'secret', X_Forwarded_For='192.0.2.9').status, 303)
        finally:
            desk.stop()

    def test_a_sign_in_goes_on_to_a_page_of_the_desk_alone(self):
        for asked, followed in (('/today', '/today'), ('/search?q=order%3A17', '/search?q=order%3A17'), ('//evil.example', '/'), ('https://evil.example/', '/'),
                                ('/\\evil.example', '/'), ('/\r\nSet-Cookie: a=b', '/'), ('evil.example', '/'), ('', '/')):
            answer = Browser(self.desk).ask('POST', '/sign-in', {'role': self.reader, 'password': 'secret', 'next': asked})
            self.assertEqual((answer.status, answer.getheader('Location')), (303, followed), asked)

    def test_cookie_and_headers(self):
        browser = Browser(self.desk)
        cookie = browser.sign_in(self.reader).getheader('Set-Cookie')
        self.assertRegex(cookie, r'^mailroom_desk=[\w-]{43}; Path=/; HttpOnly; SameSite=Strict$')
        answer = browser.get('/')
        self.assertEqual(answer.status, 200)
        policy = answer.getheader('Content-Security-Policy')
        self.assertIn("default-src 'none'", policy)
        self.assertIn("frame-ancestors 'none'", policy)
        self.assertNotIn('unsafe', policy)
        self.assertNotIn('script', policy)
        for name, value in (('X-Content-Type-Options', 'nosniff'), ('Referrer-Policy', 'no-referrer'), ('Cache-Control', 'no-store'),
                            ('X-Frame-Options', 'DENY')):
            self.assertEqual(answer.getheader(name), value)
        self.assertNotIn('<script', answer.text)

    def test_another_site_and_another_host_get_nothing(self):
        browser = self.signed_in(self.reader)
        csrf = browser.csrf()
        for headers in ({'Origin': 'https://evil.example'}, {'Origin': 'null'}, {'Origin': None},
                        {'Sec_Fetch_Site': 'cross-site'}, {'Sec_Fetch_Site': 'same-site'}, {'Origin': 'null', 'Sec_Fetch_Site': 'none'}):
            self.assertEqual(browser.ask('POST', '/sign-out', {'csrf': csrf}, **headers).status, 403, headers)
            self.assertEqual(Browser(self.desk).sign_in(self.reader, **headers).status, 403, headers)
        for forged in ({}, {'csrf': ''}, {'csrf': 'A' * 43}, {'csrf': self.signed_in(self.reader).csrf()}):
            self.assertEqual(browser.ask('POST', '/sign-out', forged).status, 403, forged)
        for host in ('evil.example', f'evil.example:{self.desk.port}', '127.0.0.1.evil.example', 'localhost.evil.example', ''):
            answer = browser.ask('GET', '/today', Host=host)
            self.assertEqual(answer.status, 421, host)
            self.assertNotIn('role', answer.text)
        # What a browser says of a form of a page that names no referrer.
        self.assertEqual(browser.ask('POST', '/sign-out', {'csrf': csrf}, Origin='null', Sec_Fetch_Site='same-origin').status, 303)
        self.assertEqual(browser.ask('GET', '/today').status, 303)

    def test_signing_out_ends_the_session_of_postgresql(self):
        count = f"SELECT count(*) FROM pg_stat_activity WHERE usename = '{self.operator}'"
        before = int(self.database.psql(count))
        browser = self.signed_in(self.operator)
        kept = browser.cookie
        self.assertEqual(int(self.database.psql(count)), before + 1)
        self.assertEqual(browser.ask('POST', '/sign-out', {'csrf': browser.csrf()}).status, 303)
        browser.cookie = kept
        self.assertEqual(browser.ask('GET', '/today').status, 303)
        for _ in range(200):
            if int(self.database.psql(count)) == before:
                break
        self.assertEqual(int(self.database.psql(count)), before)

    def test_a_session_that_the_database_ends_asks_for_the_password_again(self):
        browser = self.signed_in(self.operator)
        self.database.psql(f"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = '{self.operator}'")
        answer = browser.ask('GET', '/today')
        self.assertEqual(answer.status, 403)
        self.assertIn('The database has ended the session.', answer.text)
        self.assertEqual(browser.ask('GET', '/today').status, 303)

    def test_one_search_finds_by_each_name(self):
        browser = self.signed_in(self.reader)
        message = self.message_of('order:17')
        message_id = self.database.psql(f'SELECT d.message_id FROM mailroom_deliveries d JOIN tokens t ON t.id = d.token WHERE t.message = {message}').strip()
        self.database.psql(f"""
            UPDATE mailroom_deliveries d SET reply = '250 2.0.0 Ok: queued as 4ZbX1q2Yxz' FROM tokens t WHERE t.id = d.token AND t.message = {message}""")
        for text in ('ada@mail.example', 'Ada <ADA@mail.example>', 'order:17', str(message), f'message:{message}', f'<{message_id}>', message_id,
                     '4ZbX1q2Yxz'):
            answer = browser.search(text)
            self.assertEqual(answer.status, 200, text)
            self.assertIn(f'<h1>Message {message}</h1>', answer.text, text)
        answer = browser.search('twice@mail.example')
        self.assertEqual(len(re.findall(r'<a href="/message/\d+">', answer.text)), 2)
        for text in ('user1@mail.example', 'user1'):
            self.assertIn('account 1 (user1, user1@mail.example): provisioned', browser.search(text).text, text)
        for text in ('nobody@mail.example', 'order:18', 'message:999', '4ZbX1q2Yx', f'<{message_id}x>', f'<x.y.m{message}.mailroom@app.example>'):
            self.assertEqual(browser.search(text).status, 404, text)
        token = 'A' * 86
        self.assertIn('a token is not looked up here', browser.search(token).text)
        self.assertEqual(browser.get('/nowhere').status, 404)
        self.assertEqual(browser.get('/message/999').status, 404)

    def test_the_words_are_those_of_audit(self):
        browser = self.signed_in(self.operator)
        message = self.message_of('order:17')
        text = html.unescape(browser.get(f'/message/{message}').text)
        for line in run(MAILROOM, 'audit', f'message:{message}').splitlines():
            words = line.split('  ')[-1].strip()
            if words and ' ago' not in words and 'another' not in words:
                self.assertIn(words, text)

    def test_a_hostile_mail_is_text_everywhere_but_in_its_frame(self):
        operator = self.signed_in(self.operator)
        message, late = self.message_of('order:17'), self.message_of(HOSTILE)
        for path in (f'/message/{message}', f'/message/{late}', '/search?' + urllib.parse.urlencode({'q': HOSTILE}),
                     '/search?' + urllib.parse.urlencode({'q': 'ada@mail.example'}), '/sign-in?next=' + urllib.parse.quote(HOSTILE)):
            text = operator.get(path).text
            self.assertNotIn('<script', text, path)
            self.assertNotIn('<img', text, path)
        page = operator.get(f'/message/{message}').text
        self.assertIn('It is on its way.', page)
        self.assertIn('<iframe sandbox=""', page)
        frame = operator.get(f'/message/{message}/html')
        self.assertRegex(frame.getheader('Content-Security-Policy'), r"^sandbox; default-src 'none';")
        self.assertIn('<b>way</b>', frame.text)
        for hostile in ('<script', 'onerror', 'href="https:'):
            self.assertNotIn(hostile, frame.text)

    def test_a_reader_sees_no_content(self):
        reader = self.signed_in(self.reader)
        message = self.message_of('order:17')
        page = reader.get(f'/message/{message}').text
        self.assertIn('This role may not read what mails say.', page)
        for secret in ('It is on its way', 'Your order', '<iframe'):
            self.assertNotIn(secret, page)
        self.assertEqual(reader.get(f'/message/{message}/html').status, 403)

    def ask_for(self, reference, more=''):
        return int(self.database.psql(f"SELECT mailroom_send(ARRAY['{reference.replace(':', '')}@mail.example'], subject => 'x', text => 'x', "
                                      f"reference => '{reference}'{more})"))

    def recorded(self, reason):
        """Who did what was done for it."""
        return self.database.psql(f"SELECT actor FROM mailroom_operations WHERE reason = '{reason}'").split()

    def act(self, browser, path, **fields):
        answer = browser.ask('POST', path, {'csrf': browser.csrf(), **fields})
        answer.text = html.unescape(answer.text)
        return answer

    def test_a_change_shows_its_plan_and_is_on_record_with_its_reason(self):
        browser = self.signed_in(self.operator)
        late = self.ask_for('change:1', ", send_after => now() + interval '1 day'")
        page = html.unescape(browser.get(f'/message/{late}').text)
        for path in ('cancel', 'move'):
            self.assertIn(f'href="/message/{late}/{path}"', page)
        self.assertIn('1 message would leave from', html.unescape(browser.get(f'/message/{late}/move').text))
        self.assertIn('done: 1 message moved', self.act(browser, f'/message/{late}/move', send_after='2h', reason='moved 1').text)
        self.assertEqual(self.database.psql(f"SELECT send_after < now() + interval '3 hours' FROM mailroom_messages WHERE id = {late}").strip(), 't')
        self.assertIn('1 message would be cancelled, for good.', html.unescape(browser.get(f'/message/{late}/cancel').text))
        for fields, status in (({}, 400), ({'reason': ' '}, 400)):
            answer = self.act(browser, f'/message/{late}/cancel', **fields)
            self.assertEqual((answer.status, 'A reason is needed' in answer.text), (status, True))
        self.assertIn('1 message would be cancelled', html.unescape(browser.get(f'/message/{late}/cancel').text))
        self.assertIn('done: 1 message cancelled', self.act(browser, f'/message/{late}/cancel', reason='cancelled 1').text)
        self.assertIn('No message would be cancelled', html.unescape(browser.get(f'/message/{late}/cancel').text))
        self.assertNotIn(f'/message/{late}/cancel', browser.get(f'/message/{late}').text)
        for reason in ('moved 1', 'cancelled 1'):
            self.assertEqual(self.recorded(reason), [f'{self.operator}@desk'], reason)

    def test_a_mail_is_sent_again(self):
        browser = self.signed_in(self.operator)
        message = self.message_of('order:17')
        tokens = f'SELECT count(*) FROM tokens WHERE message = {message}'
        waiting = self.ask_for('change:2')
        self.assertIn('Send it again', browser.get(f'/message/{message}/resend').text)
        answer = self.act(browser, f'/message/{message}/resend', reason='sent again', extend='1h')
        self.assertIn('done: 1 token to be sent', answer.text)
        self.assertEqual(self.recorded('sent again'), [f'{self.operator}@desk'])
        self.assertEqual(self.act(browser, f'/message/{message}/resend', reason='x', extend='9y').status, 400)
        # What waits anyway is not sent twice.
        self.act(browser, f'/message/{waiting}/resend', reason='no reason')
        self.assertEqual(self.recorded('no reason'), [])
        self.assertEqual(self.database.psql(tokens.replace(str(message), str(waiting))).strip(), '1')

    def test_an_address_is_suppressed_and_freed(self):
        browser = self.signed_in(self.operator)
        message = self.ask_for('change:3')
        address = 'change3@mail.example'
        self.assertIn(f'Stop mails to {address}', browser.get(f'/message/{message}').text)
        self.assertIn('security mail', browser.get(f'/suppress?address={address}').text)
        suppressed = f"SELECT count(*) FROM mailroom_suppressions WHERE address = '{address}'"
        self.assertIn('gets no more messages', self.act(browser, '/suppress', address=address, reason='asked 1').text)
        self.assertEqual(self.database.psql(suppressed).strip(), '1')
        self.assertIn(f'Let mails go again to {address}', browser.get(f'/message/{message}').text)
        self.assertIn('gets messages again', self.act(browser, '/free', address=address, reason='asked 2').text)
        self.assertEqual(self.database.psql(suppressed).strip(), '0')
        self.assertEqual(self.act(browser, '/suppress', address='no address', reason='x').status, 400)
        for reason in ('asked 1', 'asked 2'):
            self.assertEqual(self.recorded(reason), [f'{self.operator}@desk'], reason)

    def test_a_person_gets_a_file_of_what_is_on_record(self):
        browser = self.signed_in(self.operator)
        self.assertIn('/export?address=twice%40mail.example', browser.search('twice@mail.example').text)
        answer = browser.get('/export?address=twice@mail.example')
        self.assertEqual((answer.status, answer.getheader('Content-Disposition')), (200, 'attachment; filename="person.json"'), answer.text)
        self.assertEqual(answer.getheader('X-Content-Type-Options'), 'nosniff')
        record = json.loads(answer.text)
        self.assertEqual((record['address'], len(record['messages'])), ('twice@mail.example', 2))
        self.assertNotIn('ada@mail.example', answer.text)
        self.assertEqual(browser.get('/export?address=nobody').status, 400)
        reader = self.signed_in(self.reader)
        self.assertNotIn('/export', reader.search('twice@mail.example').text)
        self.assertEqual(reader.get('/export?address=twice@mail.example').status, 403)

    def test_a_reader_and_another_site_change_nothing(self):
        message = self.ask_for('change:4', ", send_after => now() + interval '1 day'")
        reader, operator = self.signed_in(self.reader), self.signed_in(self.operator)
        self.assertNotIn('class="actions"', reader.get(f'/message/{message}').text)
        paths = [(f'/message/{message}/{name}', {}) for name in ('cancel', 'move', 'resend')] + [('/suppress', {'address': 'a@mail.example'}), ('/free', {'address': 'a@mail.example'})]
        for path, fields in paths:
            fields = {**fields, 'reason': 'forged', 'send_after': 'now'}
            self.assertEqual(reader.get(path + '?address=a@mail.example').status, 403, path)
            self.assertEqual(self.act(reader, path, **fields).status, 403, path)
            self.assertEqual(operator.ask('POST', path, {**fields, 'csrf': reader.csrf()}).status, 403, path)
            self.assertEqual(operator.ask('POST', path, {**fields, 'csrf': operator.csrf()}, Origin='https://evil.example').status, 403, path)
            # What a link can do: show the plan.
            operator.get(path + '?' + urllib.parse.urlencode(fields))
        self.assertEqual(self.recorded('forged'), [])
        self.assertEqual(self.database.psql(f"SELECT send_after > now() + interval '23 hours' FROM mailroom_messages WHERE id = {message}").strip(), 't')
        for path in (f'/message/{message}', f'/message/{message}/html', '/today', '/nowhere', '/'):
            self.assertEqual(self.act(operator, path, reason='x').status, 404, path)

    def test_today_and_what_is_wrong(self):
        browser = self.signed_in(self.reader)
        today = browser.get('/today').text
        for words in ('By domain', 'By role', 'By profile', 'mail.example'):
            self.assertIn(words, today)
        status = html.unescape(browser.get('/status').text)
        self.assertIn('no collector', status)
        self.assertIn('fix:' if 'fix:' in status else 'hint:', status)

    def test_a_url_makes_cookies_secure_and_is_the_only_origin(self):
        desk = Desk(MAILROOM_DESK_URL='https://desk.example', MAILROOM_DESK_LISTEN=f'127.0.0.1:{free_port()}')
        try:
            proxied = Browser(desk, 'desk.example')
            self.assertEqual(proxied.sign_in(self.reader, Origin='http://desk.example').status, 403)
            self.assertEqual(proxied.sign_in(self.reader, Origin=f'http://127.0.0.1:{desk.port}').status, 403)
            cookie = proxied.sign_in(self.reader, Origin='https://desk.example').getheader('Set-Cookie')
            self.assertRegex(cookie, r'^__Host-mailroom_desk=[\w-]{43}; Path=/; HttpOnly; SameSite=Strict; Secure$')
            self.assertEqual(proxied.get('/').status, 200)
            self.assertEqual(proxied.ask('GET', '/', Host='other.example').status, 421)
        finally:
            desk.stop()

    def test_an_address_that_others_reach_needs_a_proxy(self):
        for settings, words in (({'MAILROOM_DESK_LISTEN': '0.0.0.0:0'}, 'which other hosts can reach'),
                                ({'MAILROOM_DESK_URL': 'http://desk.example'}, 'must be https:// and a host'),
                                ({'MAILROOM_DESK_URL': 'https://desk.example/mails'}, 'must be https:// and a host')):
            result = subprocess.run([MAILROOM, 'desk'], env=dict(os.environ, **settings), capture_output=True, text=True, timeout=PATIENCE, check=False)
            self.assertEqual(result.returncode, 3)
            self.assertIn(words, result.stderr)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
