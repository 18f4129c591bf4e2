#!/usr/bin/python3
"""node_test.py MAILROOM: asks for mails with node-postgres and with Drizzle, by the functions of docs/messages.md."""

import os
import tempfile

from shop import ShopTest, code_block, main

# scripts/install-packages --tests fills the last, from package-lock.json, and the second for a Node.js that is not Debian's.
NPM = '/usr/local/share/mailroom-tests/producers/node_modules'
MODULES = f'/usr/share/nodejs:/usr/local/share/nodejs:{NPM}'
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
SCHEMA = """
const { bigint, pgTable, text } = require('drizzle-orm/pg-core');
exports.orders = pgTable('orders', {
  id: bigint('id', { mode: 'number' }).primaryKey().generatedAlwaysAsIdentity(),
  email: text('email').notNull(),
  total: text('total').notNull(),
  paid_at: text('paid_at'),
});
"""
DRIZZLE = """
const { Pool } = require('pg');
const { drizzle } = require('drizzle-orm/node-postgres');
const { orders } = require(process.env.SCHEMA_FILE);
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
  await pool.end();
})();
"""
KIT = """
module.exports = { dialect: 'postgresql', schema: process.env.SCHEMA_FILE, out: './out', dbCredentials: {
  host: process.env.PGHOST, port: Number(process.env.PGPORT || 5432), user: process.env.PGUSER, database: process.env.PGDATABASE, ssl: false } };
"""


class NodeTest(ShopTest):
    def assert_one_of_two_orders(self, printed):
        order, refused = printed
        self.assertEqual(refused, 'refused')
        self.assertEqual(len(self.messages()), 1)
        self.assert_receipt(self.messages()[0], order)
        self.assertEqual(self.token_count(), 1)
        self.assertEqual(self.psql('SELECT count(*) FROM orders').strip(), '1')

    def node(self, program, **environment):
        return self.run_as_app('node', '-e', program, '--', 'ada@example.org', 'ada@example.org, eve@example.org',
                               NODE_PATH=MODULES, **environment)

    def test_node_postgres(self):
        self.assert_one_of_two_orders(self.node(code_block('js', "client.query('BEGIN')") + NODE_POSTGRES))

    def test_drizzle(self):
        with tempfile.TemporaryDirectory() as directory:
            schema = os.path.join(directory, 'schema.js')
            with open(schema, 'w', encoding='utf-8') as file:
                file.write(SCHEMA)
            self.assert_one_of_two_orders(self.node(code_block('js', 'drizzle-orm') + DRIZZLE, SCHEMA_FILE=schema))

    def test_push_of_drizzle_leaves_mailroom_alone(self):
        with tempfile.TemporaryDirectory() as directory:
            schema, config = os.path.join(directory, 'schema.js'), os.path.join(directory, 'drizzle.config.js')
            for path, text in ((schema, SCHEMA), (config, KIT)):
                with open(path, 'w', encoding='utf-8') as file:
                    file.write(text)
            # The role of the application owns its tables only; the owner of all could drop what push wants to be gone.
            self.run_as_app('node', f'{NPM}/drizzle-kit/bin.cjs', 'push', '--force', f'--config={config}',
                            NODE_PATH=MODULES, SCHEMA_FILE=schema, PGUSER=os.environ['PGUSER'])
        self.assertEqual(self.psql("SELECT to_regclass('users') IS NULL, to_regclass('orders') IS NULL").strip(), 't\tf')
        self.assert_mails()


if __name__ == '__main__':
    main()
