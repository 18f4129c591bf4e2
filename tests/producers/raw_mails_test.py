#!/usr/bin/python3
"""raw_mails_test.py MAILROOM RubyMailTest|SymfonyTest|NodemailerTest: the adapters of docs/ that hand whole mails over, with the frameworks
that they are for. What is stored is what the framework has made. What is not installed is reported as not run."""

import base64
import email
import email.policy
import subprocess
import sys

from frameworks_test import FrameworkTest
from node_test import MODULES
from shop import code_block, main

RUBY = """
require 'active_record'
require 'mail'
require 'json'
CODE
ActiveRecord::Base.establish_connection(adapter: 'postgresql', database: ENV['PGDATABASE'], host: ENV['PGHOST'], username: ENV['PGUSER'])
made = [
  Mail.new(from: 'Shop <shop@example.org>', to: 'Ada <ada@example.org>', bcc: 'archive@example.org', subject: 'Grüße', body: "Zwölf\\n.\\n..\\n", charset: 'UTF-8'),
  Mail.new(from: 'shop@example.org', to: ['ada@example.org', 'bob@example.org'], cc: 'cy@example.org', subject: 'Files') do
    text_part { body 'Hello.' }
    html_part { content_type 'text/html; charset=UTF-8'; body '<p>Zwölf</p>' }
    add_file filename: 'a.bin', content: (0..255).to_a.pack('C*')
  end
]
made.each { |mail| mail.delivery_method(MailroomDelivery); mail.deliver! }
puts made.map { |mail| [Mail::Utilities.binary_unsafe_to_crlf(mail.encoded)].pack('m0') }
ActiveRecord::Base.transaction { made.first.deliver!; raise ActiveRecord::Rollback }
"""
SYMFONY = """<?php
require_once '/usr/share/php/Symfony/Component/Mailer/autoload.php';
CODE
use Symfony\\Component\\Mime\\Email;
$connection = new \\PDO('pgsql:host=' . getenv('PGHOST') . ';dbname=' . getenv('PGDATABASE') . ';user=' . getenv('PGUSER'));
$connection->setAttribute(\\PDO::ATTR_ERRMODE, \\PDO::ERRMODE_EXCEPTION);
$transport = new MailroomTransport($connection);
$made = [
    (new Email())->from('Shop <shop@example.org>')->to('Ada <ada@example.org>')->bcc('archive@example.org')->subject('Grüße')->text("Zwölf\\n.\\n..\\n"),
    (new Email())->from('shop@example.org')->to('ada@example.org', 'bob@example.org')->cc('cy@example.org')->subject('Files')
        ->text('Hello.')->html('<p>Zwölf</p>')->attach(implode('', array_map('chr', range(0, 255))), 'a.bin'),
];
foreach ($made as $mail) echo base64_encode($transport->send($mail)->toString()), ' ';
$connection->beginTransaction();
$transport->send($made[0]);
$connection->rollBack();
"""
NODEMAILER = """
const { Client } = require('pg');
const nodemailer = require('nodemailer');
(async () => {
  const client = new Client();
  await client.connect();
  const transporter = nodemailer.createTransport(mailroomTransport(client));
  const made = [
    { from: 'Shop <shop@example.org>', to: 'Ada <ada@example.org>', bcc: 'archive@example.org', subject: 'Grüße', text: 'Zwölf\\n.\\n..\\n' },
    { from: 'shop@example.org', to: ['ada@example.org', 'bob@example.org'], cc: 'cy@example.org', subject: 'Files', text: 'Hello.', html: '<p>Zwölf</p>',
      attachments: [{ filename: 'a.bin', content: Buffer.from([...Array(256).keys()]) }] },
  ];
  for (const mail of made) console.log((await transporter.sendMail(mail)).raw.toString('base64'));
  await client.query('BEGIN');
  await transporter.sendMail(made[0]);
  await client.query('ROLLBACK');
  await client.end();
})();
"""


class RawMailsTest(FrameworkTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.psql(f'GRANT {cls.database.name}_submitter TO {cls.app}')

    def assert_stored(self, printed):
        """Two mails are stored as they were made; the third was rolled back."""
        rows = self.psql("SELECT coalesce(return_path, '-'), array_to_string(recipients, ' '), encode(raw, 'hex') FROM "
                         'mailroom.mailroom_messages ORDER BY id')
        found = [(sender, to.split(), bytes.fromhex(raw)) for sender, to, raw in (row.split('\t') for row in rows.splitlines())]
        self.assertEqual([(sender, sorted(to)) for sender, to, _ in found],
                         [('shop@example.org', ['ada@example.org', 'archive@example.org']),
                          ('shop@example.org', ['ada@example.org', 'bob@example.org', 'cy@example.org'])])
        self.assertEqual([raw for _, _, raw in found], [base64.b64decode(each) for each in printed])
        first, second = (email.message_from_bytes(raw, policy=email.policy.default) for _, _, raw in found)
        self.assertEqual(first['subject'], 'Grüße')
        self.assertNotIn(b'archive@', found[0][2])
        self.assertEqual(first.get_content().replace('\r', '').rstrip('\n'), 'Zwölf\n.\n..')
        self.assertEqual(second.get_body(('html',)).get_content().strip(), '<p>Zwölf</p>')
        self.assertEqual([part.get_content() for part in second.walk() if part.get_filename()], [bytes(range(256))])
        self.assertEqual(self.token_count(), 5)


class RubyMailTest(RawMailsTest):
    needs = ['ruby', '-e', "require 'pg'; require 'active_record'; require 'mail'"]

    def test_the_mails_of_ruby(self):
        code = code_block('ruby', 'class MailroomDelivery', 'docs/rails.md')
        self.assert_stored(self.run_as_app('ruby', self.write('mail.rb', RUBY.replace('CODE', code))))


class SymfonyTest(RawMailsTest):
    needs = ['php', '-r', "extension_loaded('pdo_pgsql') || exit(1); require '/usr/share/php/Symfony/Component/Mailer/autoload.php';"]

    def test_the_mails_of_symfony(self):
        code = code_block('php', 'class MailroomTransport', 'docs/laravel.md')
        self.assert_stored(self.run_as_app('php', self.write('mail.php', SYMFONY.replace('CODE', code))))


class NodemailerTest(RawMailsTest):
    needs = ['env', f'NODE_PATH={MODULES}', 'node', '-e', "require('pg'); require('nodemailer')"]

    def test_the_mails_of_nodemailer(self):
        code = code_block('js', 'function mailroomTransport')
        self.assert_stored(self.run_as_app('node', self.write('mail.js', code + NODEMAILER), NODE_PATH=MODULES))


if __name__ == '__main__':
    test = globals()[sys.argv[2]]
    if subprocess.run(test.needs, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode != 0:
        sys.exit(print(f'NOT RUN: producers/raw mails of {sys.argv[2][:-4]}: {test.needs[0]} lacks the libraries of the page'))
    main()
