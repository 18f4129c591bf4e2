#!/usr/bin/python3
"""node_test.py MAILROOM: asks for mails with node-postgres, Drizzle, TypeORM and Sequelize, by the functions of docs/messages.md, and runs
what they do to a schema."""

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
module.exports = { dialect: 'postgresql', schema: process.env.SCHEMA_FILE, out: process.env.OUT, dbCredentials: {
  host: process.env.PGHOST, port: Number(process.env.PGPORT || 5432), user: process.env.PGUSER, database: process.env.PGDATABASE, ssl: false } };
"""
TYPEORM = """
require('reflect-metadata');
const { DataSource, EntitySchema } = require('typeorm');
const order = new EntitySchema({ name: 'Order', tableName: 'orders', columns: {
  id: { type: 'bigint', primary: true, generated: 'identity', generatedIdentity: 'ALWAYS' }, email: { type: 'text' }, total: { type: 'text' },
  paid_at: { type: 'timestamptz', nullable: true } } });
(async () => {
  const source = await new DataSource({ type: 'postgres', host: process.env.PGHOST, username: process.env.PGUSER, database: process.env.PGDATABASE,
    entities: [order], synchronize: true, dropSchema: Boolean(process.env.DROP) }).initialize();
  for (const email of process.argv.slice(1)) {
    try {
      console.log(await source.transaction(async (manager) => {
        const made = await manager.getRepository('Order').save({ email, total: '12.00' });
        await sendByTypeorm(manager, made);
        return made.id;
      }));
    } catch (error) {
      console.log('refused');
    }
  }
  await source.destroy();
})();
"""
SEQUELIZE = """
const { DataTypes, Sequelize } = require('sequelize');
(async () => {
  const sequelize = new Sequelize(process.env.PGDATABASE, process.env.PGUSER, '', { host: process.env.PGHOST, dialect: 'postgres', logging: false });
  const orders = sequelize.define('orders', { id: { type: DataTypes.BIGINT, primaryKey: true, autoIncrement: true }, email: DataTypes.TEXT,
    total: DataTypes.TEXT }, { timestamps: false });
  await sequelize.sync({ force: true });
  if (process.env.DROP) await sequelize.getQueryInterface().dropAllTables();
  if (process.env.DROP) await sequelize.sync();
  for (const email of process.argv.slice(1)) {
    try {
      console.log(await sequelize.transaction(async (transaction) => {
        const made = await orders.create({ email, total: '12.00' }, { transaction });
        await sendBySequelize(sequelize, transaction, made);
        return made.id;
      }));
    } catch (error) {
      console.log('refused');
    }
  }
  await sequelize.close();
})();
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

    def drizzle_kit(self, directory, *words, **environment):
        """Its configuration has no filter: what is in the schema public is all that it sees."""
        schema, config = os.path.join(directory, 'schema.js'), os.path.join(directory, 'drizzle.config.js')
        for path, text in ((schema, SCHEMA), (config, KIT)):
            with open(path, 'w', encoding='utf-8') as file:
                file.write(text)
        self.run_as_app('node', f'{NPM}/drizzle-kit/bin.cjs', *words, f'--config={config}',
                        NODE_PATH=MODULES, SCHEMA_FILE=schema, OUT=os.path.join(directory, 'out'), **environment)

    def test_push_of_drizzle_leaves_mailroom_alone(self):
        with tempfile.TemporaryDirectory() as directory:
            # The role of the application owns its tables only; the owner of all could drop what push wants to be gone.
            self.drizzle_kit(directory, 'push', '--force', PGUSER=os.environ['PGUSER'])
        self.assertEqual(self.psql("SELECT to_regclass('users') IS NULL, to_regclass('orders') IS NULL").strip(), 't\tf')
        self.assert_mails()

    def test_migrations_of_drizzle_leave_mailroom_alone(self):
        self.psql('DROP TABLE orders, users')
        with tempfile.TemporaryDirectory() as directory:
            self.drizzle_kit(directory, 'generate')
            made = [name for name in os.listdir(f'{directory}/out') if name.endswith('.sql')]
            with open(f'{directory}/out/{made[0]}', encoding='utf-8') as file:
                self.assertNotIn('mailroom', file.read())
            self.psql(f'GRANT CREATE ON DATABASE {self.database.name} TO {self.app}')  # for its own schema of migrations
            self.drizzle_kit(directory, 'migrate')
        self.assertEqual(self.psql("SELECT to_regclass('orders') IS NULL").strip(), 'f')
        self.assert_mails()

    def test_typeorm_synchronizes_and_mails(self):
        for drop in ('', 'yes'):
            with self.subTest(drop=drop):
                self.setUp()
                # The owner of all could drop all.
                self.assert_one_of_two_orders(self.node(code_block('js', 'sendByTypeorm') + TYPEORM, DROP=drop, PGUSER=os.environ['PGUSER']))
                self.assert_mails()

    def test_sequelize_synchronizes_and_mails(self):
        for drop in ('', 'yes'):
            with self.subTest(drop=drop):
                self.setUp()
                self.assert_one_of_two_orders(self.node(code_block('js', 'sendBySequelize') + SEQUELIZE, DROP=drop, PGUSER=os.environ['PGUSER']))
                self.assert_mails()

    def test_typeorm_and_sequelize_mail_as_the_producer(self):
        for name, program in (('sendByTypeorm', TYPEORM), ('sendBySequelize', SEQUELIZE)):
            with self.subTest(name=name):
                self.setUp()
                self.assert_one_of_two_orders(self.node(code_block('js', name) + program))


if __name__ == '__main__':
    main()
