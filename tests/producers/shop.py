"""What the tests of docs/messages.md and its like share: a database with tables of an application, a role of the application that is the
documented producer, and the code of the documents."""

import json
import os
import re
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
DIRECTORY = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(DIRECTORY, '..', '..')
sys.path.append(os.path.join(DIRECTORY, '..', 'support'))
from own_database import OwnDatabase, run  # noqa: E402

# An application that was there before: its users have uuids, and one table has a name of mailroom's.
TABLES = """
    CREATE TABLE users (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), email text UNIQUE, name text, locale text,
                        password_hash text, newsletter boolean NOT NULL DEFAULT false);
    CREATE TABLE orders (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, email text NOT NULL, total text NOT NULL,
                         paid_at timestamptz);
    CREATE TABLE accounts (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), balance numeric NOT NULL)"""


def code_blocks(language, document='docs/messages.md'):
    with open(os.path.join(ROOT, document), encoding='utf-8') as file:
        return re.findall(rf'^```{language}\n(.*?)^```$', file.read(), re.MULTILINE | re.DOTALL)


def code_block(language, part, document='docs/messages.md'):
    """The only block of the document with this language that contains `part`."""
    found = [block for block in code_blocks(language, document) if part in block]
    if len(found) != 1:
        raise LookupError(f'{len(found)} blocks of {document} contain {part!r}')
    return found[0]


def run_block(part, **names):
    """The names that a block of Python defines, which knows `names`."""
    exec(code_block('python', part), names)
    return names


class ShopTest(unittest.TestCase):
    """Each class has a database of its own, with mailroom in the schema `mailroom`, and tests one way to ask for mails. The role `app`
    owns the application's tables and is the documented producer; no search path leads to mailroom."""

    mailroom = None  # main() sets it

    @classmethod
    def setUpClass(cls):
        cls.database = OwnDatabase(cls.__name__.lower())
        cls.database.create(cls.mailroom, MAILROOM_DATABASE_SCHEMA='mailroom')
        cls.database.make_roles(cls.mailroom)
        cls.app = f'{cls.database.name}_shop'
        cls.psql(f'CREATE ROLE {cls.app} LOGIN IN ROLE {cls.database.name}_producer; GRANT CREATE ON SCHEMA public TO {cls.app}')
        os.environ['PGOPTIONS'] = '-c client_min_messages=warning'

    @classmethod
    def tearDownClass(cls):
        cls.database.drop()

    def setUp(self):
        self.psql(f"""DROP TABLE IF EXISTS users, orders, accounts; {TABLES};
            ALTER TABLE users OWNER TO {self.app}; ALTER TABLE orders OWNER TO {self.app};
            TRUNCATE mailroom.mailroom_messages, mailroom.tokens CASCADE""")

    @classmethod
    def psql(cls, sql):
        """As the owner."""
        return cls.database.psql(sql)

    @classmethod
    def psql_as_app(cls, sql):
        return run('psql', '-XAtqF', '\t', '-v', 'ON_ERROR_STOP=1', '-U', cls.app, '-d', cls.database.name, '-c', sql)

    def run_as_app(self, *command, **environment):
        """The words that a program has printed which connects as the application."""
        environment = {**os.environ, 'PGDATABASE': self.database.name, 'PGUSER': self.app, **environment}
        ended = subprocess.run(command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if ended.returncode != 0:
            self.fail(f'{ended.stderr}\nhint: scripts/install-packages --tests installs what it needs')
        return ended.stdout.split()

    def messages(self):
        """All messages, oldest first, without what is null."""
        rows = self.psql('SELECT jsonb_strip_nulls(to_jsonb(m)) FROM mailroom.mailroom_messages m ORDER BY id')
        return [json.loads(line) for line in rows.splitlines()]

    def token_count(self):
        return int(self.psql('SELECT count(*) FROM mailroom.tokens WHERE message IS NOT NULL'))

    def assert_mails(self):
        """mailroom is as migrate made it, and mails what the application asks for."""
        run(self.mailroom, 'migrate', 'verify')
        self.psql('TRUNCATE mailroom.mailroom_messages, mailroom.tokens CASCADE')
        self.psql_as_app("SELECT mailroom.mailroom_send(ARRAY['ada@example.org'], subject => 'Hello', text => 'It works.')")
        self.assertEqual((len(self.messages()), self.token_count()), (1, 1))

    def assert_receipt(self, message, order, total='12.00', reference=True):
        self.assertEqual(message['recipients'], ['ada@example.org'])
        self.assertEqual(message['template'], 'receipt')
        self.assertEqual({name: str(value) for name, value in message['data'].items()},
                         {'order': str(order), 'total': total})
        if reference:
            self.assertEqual(message['reference'], f'order:{order}')

    def assert_rolled_back(self):
        self.assertEqual(self.messages(), [])
        self.assertEqual(self.token_count(), 0)
        self.assertEqual(self.psql('SELECT count(*) FROM orders').strip(), '0')


def main():
    """TEST MAILROOM [NAME...]"""
    ShopTest.mailroom = os.path.abspath(sys.argv[1])
    unittest.main(module='__main__', argv=sys.argv[:1] + sys.argv[2:])
