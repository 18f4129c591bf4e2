#!/usr/bin/python3
"""examples_test.py MAILROOM node|django: uses the shop of examples/ as its visitors do, with a real Postfix, from the commands of its
README.md to the receipt. Needs a PostgreSQL in PGHOST and PGUSER.
"""

import html.parser
import http.cookiejar
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

sys.dont_write_bytecode = True
DIRECTORY = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(DIRECTORY, '..', '..')
sys.path.append(os.path.join(DIRECTORY, '..', 'support'))
from free_port import free_port  # noqa: E402
from own_database import OwnDatabase, run  # noqa: E402

MAILROOM, SHOP = os.path.abspath(sys.argv[1]), sys.argv[2]
CHECK = os.path.join(ROOT, 'tests', 'mail', 'check_maildir.py')
WITH_POSTFIX = os.path.join(ROOT, 'scripts', 'with-postfix')
# Debian's, or what scripts/install-packages --tests has unpacked for another Node.js.
MODULES = ['/usr/share/nodejs', '/usr/local/share/nodejs']
TIME_LIMIT = 30  # seconds


class Inputs(html.parser.HTMLParser):
    """The hidden inputs of a form."""

    def __init__(self, page):
        super().__init__()
        self.values = {}
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        if tag == 'input' and values.get('type') == 'hidden':
            self.values[values['name']] = values.get('value', '')


class Visitor:
    """A browser with its cookies."""

    def __init__(self, port):
        self.base = f'http://127.0.0.1:{port}'
        self.opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))

    def open(self, address, data=None):
        """The status and the page."""
        try:
            with self.opener.open(urllib.parse.urljoin(self.base, address), data, timeout=TIME_LIMIT) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def submit(self, address, **fields):
        """Opens a page, fills in its form and presses the button."""
        status, page = self.open(address)
        if status != 200:
            return status, page
        values = dict(Inputs(page).values, **fields)
        return self.open(urllib.parse.urljoin(self.base, address).split('?')[0], urllib.parse.urlencode(values).encode())


class ExamplesTest(unittest.TestCase):
    """One visit, from the empty database to the receipt."""

    @classmethod
    def setUpClass(cls):
        cls.processes = []
        cls.port = free_port()
        cls.directory = tempfile.mkdtemp()
        cls.shop = shutil.copytree(os.path.join(ROOT, 'examples', SHOP), os.path.join(cls.directory, SHOP))
        cls.database = OwnDatabase(f'shop_{SHOP}')
        run('createdb', cls.database.name)
        os.chdir(cls.shop)
        for variable in list(os.environ):
            if variable.startswith('MAILROOM_') and not variable.startswith('MAILROOM_TEST_'):
                del os.environ[variable]
        os.environ.update(PGDATABASE=cls.database.name, MAILROOM_DATABASE_URL=f'dbname={cls.database.name}',
                          MAILROOM_SEND_RELAY=os.environ['MAILROOM_TEST_RELAY'],
                          MAILROOM_SEND_LINK=f'http://127.0.0.1:{cls.port}/{{action}}?token={{token}}',
                          PYTHONDONTWRITEBYTECODE='1')
        cls.owner, cls.role = os.environ['PGUSER'], cls.database.name
        cls.database.psql(f'CREATE ROLE {cls.role} LOGIN; GRANT CREATE ON SCHEMA public TO {cls.role}')
        os.environ['PGUSER'] = cls.role
        cls.set_up_application()
        os.environ['PGUSER'] = cls.owner
        with open(os.open('mailroom.key', os.O_CREAT | os.O_WRONLY, 0o600), 'w') as file:
            file.write('ab' * 32 + '\n')
        run(MAILROOM, 'migrate')
        run('psql', '-Xqv', 'ON_ERROR_STOP=1', '-f', 'mail.sql')
        with open('mail.sql', encoding='utf-8') as file:
            rights = re.findall(r'^--   (GRANT .*;)$', file.read(), re.MULTILINE)
        cls.database.psql(''.join(rights).replace('TO shop', f'TO {cls.role}'))
        run(MAILROOM, 'template', 'check')
        cls.start(MAILROOM, 'send')
        cls.start_application()

    @classmethod
    def set_up_application(cls):
        if SHOP == 'django':
            run('./manage.py', 'migrate')
        else:
            run('psql', '-Xqv', 'ON_ERROR_STOP=1', '-f', 'schema.sql')
            os.symlink(next(path for path in MODULES if os.path.isdir(f'{path}/pg')), 'node_modules')

    @classmethod
    def start_application(cls):
        if SHOP == 'django':
            cls.start('./manage.py', 'runserver', '--noreload', str(cls.port), PGUSER=cls.role)
        else:
            cls.start('node', 'app.mjs', PORT=str(cls.port), PGUSER=cls.role, NODE_PATH=':'.join(MODULES))
        deadline = time.monotonic() + TIME_LIMIT
        while time.monotonic() < deadline:
            with socket.socket() as probe:
                if probe.connect_ex(('127.0.0.1', cls.port)) == 0:
                    return
            time.sleep(0.05)
        raise TimeoutError('the application does not answer\nhint: scripts/install-packages --tests installs what it needs')

    @classmethod
    def start(cls, *command, **environment):
        cls.processes.append(subprocess.Popen(command, env=dict(os.environ, **environment), stdout=subprocess.DEVNULL))

    @classmethod
    def tearDownClass(cls):
        for process in reversed(cls.processes):
            process.terminate()
            process.wait(TIME_LIMIT)
        os.chdir('/')
        shutil.rmtree(cls.directory)
        cls.database.drop()
        run('psql', '-Xqd', 'postgres', '-c', f'DROP ROLE {cls.role}')

    def mails(self, count):
        """All mails, after `count` have come."""
        output = run(CHECK, '--wait-for', str(count), os.environ['MAILROOM_TEST_MAILDIR'])
        mails = [json.loads(line) for line in output.splitlines()]
        self.assertEqual(len(mails), count)
        for mail in mails:
            self.assertEqual(mail['defects'], [])
            self.assertEqual(mail['from'], 'The shop <no-reply@shop.example>')
        return mails

    def assert_done(self, answer, text):
        self.assertEqual((answer[0], text in answer[1]), (200, True), answer)

    def test_a_visit(self):
        visitor = Visitor(self.port)
        self.assertEqual(visitor.submit('/signup', name='Eve', email='ada@example.org, eve@example.org')[0], 400)

        self.assert_done(visitor.submit('/signup', name='Ada <b>', email='ada@example.org'), 'look into your mailbox')
        self.assert_done(visitor.submit('/signup', name='Ada', email='ada@example.org'), 'look into your mailbox')
        confirm = self.mails(1)[0]
        self.assertEqual((confirm['to'], confirm['subject']), ('ada@example.org', 'Welcome to the shop, Ada <b>'))
        self.assertEqual(visitor.submit(confirm['links'][0].replace('/confirm', '/magic_link'))[0], 400)
        self.assert_done(visitor.open(confirm['links'][0]), 'button')
        self.assert_done(visitor.submit(confirm['links'][0]), 'Your address is confirmed')
        self.assertEqual(visitor.submit(confirm['links'][0])[0], 400)

        self.assert_done(visitor.submit('/login', email='nobody@example.org'), 'look into your mailbox')
        self.assert_done(visitor.submit('/login', email='ada@example.org'), 'look into your mailbox')
        link = self.mails(2)[1]['links'][0]
        self.assertEqual(visitor.submit('/orders', item='book')[0], 400)
        self.assert_done(visitor.submit(link), 'You are signed in')
        self.assertEqual(Visitor(self.port).submit(link)[0], 400)

        answer = visitor.submit('/orders', item='book')
        self.assert_done(answer, 'Thank you for your order')
        order = re.search('[0-9a-f-]{36}', answer[1])[0]
        self.assertEqual(visitor.submit('/orders', item='book')[0], 400)  # sold out
        self.assert_done(visitor.submit('/orders', item='lamp'), 'Thank you for your order')
        receipts = self.mails(4)[2:]
        self.assertEqual([mail['subject'] for mail in receipts], ['Your order: book', 'Your order: lamp'])
        self.assertIn('for 12.00 €', receipts[0]['text'])
        self.assertIn('<b>book</b>', receipts[0]['html'])
        self.check_records(order)
        if SHOP == 'django':
            self.reset_password(visitor)

    def check_records(self, order):
        deadline = time.monotonic() + TIME_LIMIT
        while time.monotonic() < deadline:
            messages = [json.loads(line) for line in run(MAILROOM, '-o', 'json', 'message', 'list').splitlines()]
            if all(message['states'] == {'accepted': 1} for message in messages):
                break
            time.sleep(0.1)
        self.assertEqual([message['states'] for message in messages], [{'accepted': 1}] * 4)
        receipt = next(message for message in messages if message['reference'] == f'order:{order}')
        self.assertEqual((receipt['template'], receipt['recipient']), ('receipt', 'ada@example.org'))
        self.assertIn('accepted', run(MAILROOM, 'audit', f'order:{order}'))

    def reset_password(self, visitor):
        self.assert_done(visitor.submit('/reset', email='ada@example.org'), 'Thank you')
        mail = self.mails(5)[4]
        self.assertEqual(mail['subject'], 'Your password at the shop')
        status, page = visitor.open(mail['links'][0])
        self.assertEqual((status, 'new_password1' in page), (200, True))


if __name__ == '__main__':
    if os.geteuid() != 0:
        sys.exit(print('NOT RUN: only root can start a Postfix'))
    if 'MAILROOM_TEST_RELAY' not in os.environ:
        os.execv(WITH_POSTFIX, [WITH_POSTFIX, '--', sys.executable, *sys.argv])
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
