#!/usr/bin/python3
"""node_test.py MAILROOM: asks for mails with node-postgres and with Drizzle, by the functions of docs/messages.md."""

import json
import os
import subprocess

from shop import ShopTest, code_block, main

# scripts/install-packages --tests fills the first, from package-lock.json, and the last for a Node.js that is not Debian's.
MODULES = '/usr/local/share/mailroom-tests/producers/node_modules:/usr/share/nodejs:/usr/local/share/nodejs'
NODE_POSTGRES = """
const { Pool } = require('pg');
(async () => {
  const pool = new Pool();
  for (const email of process.argv.slice(1)) {
    try {
      console.log(await placeOrder(pool, email, '12.00'));
    } catch (error) {
      console.log('refused');
    }
  }
  await pool.end();
})();
"""
DRIZZLE = """
const { Pool } = require('pg');
const { drizzle } = require('drizzle-orm/node-postgres');
const { sql } = require('drizzle-orm');
const orders = pgTable('orders', {
  id: bigint('id', { mode: 'number' }).primaryKey().generatedAlwaysAsIdentity(),
  email: text('email'),
  total: text('total'),
});
(async () => {
  const pool = new Pool();
  const db = drizzle(pool);
  for (const email of process.argv.slice(1)) {
    try {
      console.log((await placeOrder(db, orders, email, '12.00')).id);
    } catch (error) {
      console.log('refused');
    }
  }
  await db.transaction(async (tx) => {
    await tx.execute(CALL);
  });
  await db.insert(messages).values(Array.from({ length: 20 }, (_, number) =>
    ({ recipients: [`user${number}@example.org`], template: 'newsletter', data: null })));
  await pool.end();
})();
"""


class NodeTest(ShopTest):
    def node(self, program, *arguments):
        environment = dict(os.environ, PGDATABASE=self.database.name, NODE_PATH=MODULES)
        ended = subprocess.run(['node', '-e', program, '--', *arguments], env=environment, text=True, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
        if ended.returncode != 0:
            self.fail(f'{ended.stderr}\nhint: scripts/install-packages --tests installs Node.js, pg and drizzle-orm')
        return ended.stdout.split()

    def test_node_postgres(self):
        program = code_block('js', "client.query('BEGIN')") + NODE_POSTGRES
        order, refused = self.node(program, 'ada@example.org', 'ada@example.org, eve@example.org')
        self.assertEqual(refused, 'refused')
        self.assertEqual(len(self.messages()), 1)
        self.assert_receipt(self.messages()[0], order)
        self.assertEqual(self.psql('SELECT count(*) FROM orders').strip(), '1')

    def test_drizzle(self):
        call = 'sql`SELECT mailroom_send(${sql.param([email])}::text[], template => \'welcome\')`'
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../docs/messages.md'), encoding='utf-8') as file:
            self.assertIn(call, file.read())
        program = code_block('js', 'drizzle-orm') + DRIZZLE.replace('CALL', call.replace('email', "'bob@example.org'"))
        order, refused = self.node(program, 'ada@example.org', 'ada@example.org, eve@example.org')
        self.assertEqual(refused, 'refused')
        messages = self.messages()
        self.assert_receipt(messages[0], order)
        self.assertEqual((messages[1]['recipients'], messages[1]['template']), (['bob@example.org'], 'welcome'))
        self.assertEqual(self.token_count(), 22)
        self.assertEqual(self.psql('SELECT count(*) FROM mailroom_messages WHERE data IS NULL').strip(), '21')
        self.assertEqual(json.loads(self.psql('SELECT count(*) FROM orders')), 1)


if __name__ == '__main__':
    main()
