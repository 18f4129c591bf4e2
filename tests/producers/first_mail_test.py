#!/usr/bin/python3
"""first_mail_test.py MAILROOM: types the commands of docs/messages.md that lead from the tables of an application to its first mail,
with a real Postfix. Needs a PostgreSQL in PGHOST and PGUSER.
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

from shop import ROOT, TABLES, OwnDatabase, code_block, run

MAILROOM = os.path.abspath(sys.argv[1])
CHECK = os.path.join(ROOT, 'tests', 'mail', 'check_maildir.py')
WITH_POSTFIX = os.path.join(ROOT, 'scripts', 'with-postfix')
MOST_COMMANDS = 5


class FirstMailTest(unittest.TestCase):
    def test_the_commands_lead_to_a_mail(self):
        commands = code_block('sh', 'mailroom send --once')
        self.assertLessEqual(len(commands.splitlines()), MOST_COMMANDS)
        database = OwnDatabase('first_mail')
        run('createdb', database.name)
        self.addCleanup(database.drop)
        database.psql(TABLES)
        for typed, here in (('dbname=shop', f'dbname={database.name}'), ('-d shop', f'-d {database.name}'),
                            ('smtp://user@relay.example:587', os.environ['MAILROOM_TEST_RELAY'])):
            self.assertIn(typed, commands)
            commands = commands.replace(typed, here)
        environment = {name: value for name, value in os.environ.items() if not name.startswith('MAILROOM_')}
        environment['PATH'] = os.path.dirname(MAILROOM) + ':' + environment['PATH']
        with tempfile.TemporaryDirectory() as directory:
            subprocess.run(['bash', '-euc', commands], check=True, env=environment, cwd=directory)
        mail = json.loads(run(CHECK, '--wait-for', '1', os.environ['MAILROOM_TEST_MAILDIR']))
        self.assertEqual([mail[name] for name in ('to', 'from', 'subject', 'text', 'defects')],
                         ['ada@example.org', 'Shop <no-reply@shop.example>', 'Hello', 'It works.\n', []])


if __name__ == '__main__':
    if os.geteuid() != 0:
        sys.exit(print('NOT RUN: only root can start a Postfix'))
    if 'MAILROOM_TEST_RELAY' not in os.environ:
        os.execv(WITH_POSTFIX, [WITH_POSTFIX, '--', sys.executable, *sys.argv])
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
