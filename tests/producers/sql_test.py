#!/usr/bin/python3
"""sql_test.py MAILROOM: runs the statements of docs/messages.md as the application: the function, the table, the casts, the triggers, the
jobs of pg_cron."""

import json
import os
import re

from shop import ROOT, ShopTest, code_block, code_blocks, main, run


class SqlTest(ShopTest):
    def add_users(self):
        self.psql("""
            INSERT INTO users (email, name, locale, password_hash, newsletter) VALUES
                ('ada@example.org', 'Ada', 'en', 'secret', true), ('bob@example.org', 'Bob', 'de-AT', 'secret', true),
                ('eve@example.org', 'Eve', NULL, 'secret', false)""")

    def test_the_first_statements(self):
        first = code_blocks('sql')[0].splitlines()
        self.psql_as_app('\n'.join(line for line in first if 'mailroom_send' in line))
        receipt, hello = self.messages()
        self.assertEqual(receipt['data'], {'order': 17, 'total': '12.00 €'})
        self.assertEqual((hello['recipients'], hello['subject'], hello['text'], hello['reference']),
                         (['Ada <ada@example.org>'], 'Hello', 'It works.', 'order:17'))
        cancel = next(line for line in first if 'cancel' in line).replace('4711', str(hello['id']))
        self.assertEqual(self.psql_as_app(cancel).strip(), 'cancelled')
        status = next(line for line in first if 'status' in line).replace('4711', str(hello['id']))
        self.assertIn('\tcancelled\t', self.psql_as_app(status))

    def test_the_statements_for_who_comes_from_another_database(self):
        for block in code_blocks('sql', 'docs/moving.md'):
            self.psql_as_app(block)
        server, attached, oracle = self.messages()
        self.assertEqual((server['recipients'], server['profile']), (['ada@example.org', 'bob@example.org'], 'shop'))
        self.assertEqual((attached['subject'], oracle['sender']), ('Orders', 'shop@example.org'))
        self.assertEqual(self.psql("SELECT convert_from(content, 'UTF8') FROM mailroom.mailroom_attachments ORDER BY message DESC LIMIT 1"),
                         '1,12.00\n2,7.50\n')

    def test_the_casts(self):
        casts = re.findall(r'^\| .* \| `(\w+ => .*)` \|$', self.section('## Casts'), re.MULTILINE)
        self.assertGreater(len(casts), 4)
        for cast in casts:
            with self.subTest(cast=cast):
                self.psql_as_app(f"SELECT mailroom.mailroom_send(ARRAY['ada@example.org'], template => 'receipt', {cast})")
        self.assertEqual(len(self.messages()), len(casts))

    @staticmethod
    def section(heading):
        with open(os.path.join(ROOT, 'docs', 'messages.md'), encoding='utf-8') as file:
            return file.read().split(heading + '\n')[1].split('\n## ')[0]

    def test_the_hook_of_supabase(self):
        auth = f'{self.database.name}_auth'
        self.psql(f'CREATE ROLE {auth} LOGIN')
        self.psql(code_block('sql', 'supabase_auth_admin', 'docs/supabase.md').replace('supabase_auth_admin', auth))
        event = json.dumps({'user': {'id': '8484b834-f29e-4af2-bf42-80644d154f76', 'email': 'ada@example.org'},
                            'email_data': {'email_action_type': 'reauthentication', 'token': '305805'}})
        run('psql', '-Xqv', 'ON_ERROR_STOP=1', '-U', auth, '-d', self.database.name,
            '-c', f"SELECT mailroom.mailroom_supabase_hook('{event}')")
        self.assertEqual(self.messages()[0]['template'], 'supabase_reauthentication')
        self.psql(f'DROP OWNED BY {auth}; DROP ROLE {auth}')

    def test_a_statement_for_many(self):
        self.add_users()
        self.psql_as_app(code_block('sql', "'newsletter'"))
        self.assertEqual(sorted(message['data']['name'] for message in self.messages()), ['Ada', 'Bob'])

    def test_a_job_that_runs_twice_mails_once(self):
        self.add_users()
        job = code_block('sql', "'digest'")
        self.psql_as_app(job)
        self.psql_as_app(job)
        self.assertEqual(len(self.messages()), 2)
        self.assertEqual(self.token_count(), 2)

    def test_a_trigger_without_a_function(self):
        self.psql_as_app(code_block('sql', 'CREATE TRIGGER welcome'))
        self.add_users()
        self.psql_as_app("INSERT INTO users (name) VALUES ('nobody')")
        messages = self.messages()
        self.assertEqual([message['recipients'] for message in messages],
                         [['ada@example.org'], ['bob@example.org'], ['eve@example.org']])
        self.assertEqual([message.get('locale') for message in messages], ['en', 'de-AT', None])
        self.assertEqual([message['data'] for message in messages], [{'name': 'Ada'}, {'name': 'Bob'}, {'name': 'Eve'}])
        self.assertNotIn('secret', json.dumps(messages))
        self.psql('DROP TRIGGER welcome ON users')

    def test_a_trigger_with_a_function(self):
        self.psql_as_app(code_block('sql', 'CREATE FUNCTION send_receipt'))
        order = self.psql("INSERT INTO orders (email, total) VALUES ('ada@example.org', '12.00') RETURNING id").strip()
        self.assertEqual(self.messages(), [])
        self.psql_as_app('UPDATE orders SET paid_at = now()')
        self.psql_as_app("UPDATE orders SET total = '13.00'")
        self.assertEqual(len(self.messages()), 1)
        self.assert_receipt(self.messages()[0], order)
        self.psql('DROP FUNCTION send_receipt CASCADE')

    def test_a_link_without_an_account(self):
        self.add_users()
        self.psql(code_block('sql', 'mailroom_create_action'))
        self.psql_as_app(code_block('sql', "action => 'magic_link', reference"))
        user = self.psql("SELECT id FROM users WHERE email = 'ada@example.org'").strip()
        self.assertEqual(self.messages()[0]['reference'], f'user:{user}')
        secret = self.psql("SELECT encode(secret, 'hex') FROM mailroom.tokens WHERE action = 'magic_link' AND account IS NULL").strip()
        redeem = code_block('sql', 'RETURNING m.reference', 'docs/redeeming.md').replace('$1', f"'\\x{secret}'")
        self.psql(code_block('sql', 'GRANT SELECT (secret', 'docs/redeeming.md').replace('TO shop', f'TO {self.app}'))
        self.assertEqual(self.psql_as_app(redeem).strip(), f'user:{user}')
        self.assertEqual(self.psql_as_app(redeem).strip(), '')


if __name__ == '__main__':
    main()
