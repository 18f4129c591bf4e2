#!/usr/bin/python3
"""frameworks_test.py MAILROOM RailsTest|LaravelTest|SpringTest|GoTest: the code of docs/rails.md and its like, with Debian's packages.
What is not installed is reported as not run."""

import contextlib
import os
import socket
import socketserver
import subprocess
import sys
import tempfile
import textwrap
import threading

from shop import ROOT, ShopTest, code_block, main

GOOD, BAD = 'ada@example.org', 'ada@example.org, eve@example.org'
JARS = [f'/usr/share/java/{name}.jar' for name in
        ('spring3-jdbc-3.x', 'spring3-core-3.x', 'spring3-beans-3.x', 'spring3-transaction-3.x', 'commons-logging', 'postgresql')]
RAILS = """
require 'active_record'
ActiveRecord::Base.establish_connection(adapter: 'postgresql', database: ENV['PGDATABASE'], host: ENV['PGHOST'], username: ENV['PGUSER'])
CODE
ActiveRecord::Base.connection.cache do
  ARGV.each do |email|
    puts Order.place(email, '12.00').id
  rescue ActiveRecord::StatementInvalid
    puts 'refused'
  end
end
if ENV['SCHEMA_FILE']
  require 'active_record/tasks/database_tasks'
  File.open(ENV['SCHEMA_FILE'], 'w') { |file| ActiveRecord::SchemaDumper.dump(ActiveRecord::Base.connection, file) }
  ActiveRecord::Migration.verbose = false
  load ENV['SCHEMA_FILE']
end
if ENV['STRUCTURE_FILE']
  require 'active_record/tasks/postgresql_database_tasks'
  ActiveRecord::Base.dump_schemas = ENV['DUMP_SCHEMAS'] unless ENV['DUMP_SCHEMAS'].to_s.empty?
  configuration = ActiveRecord::DatabaseConfigurations::HashConfig.new('test', 'primary',
    { adapter: 'postgresql', database: ENV['PGDATABASE'], host: ENV['PGHOST'], username: ENV['PGUSER'] })
  ActiveRecord::Tasks::PostgreSQLDatabaseTasks.new(configuration).structure_dump(ENV['STRUCTURE_FILE'], nil)
end
# Statements that are equal to the byte, as the cache would have them.
if ENV['TWICE']
  ActiveRecord::Base.connection.cache do
    values = { email: 'ada@example.org', data: '{}', reference: nil }
    2.times { Order.connection.exec_query(Order.sanitize_sql_array([Order::SEND, values])) }
  end
end
"""
LARAVEL = """<?php
require_once '/usr/share/php/Illuminate/Database/autoload.php';
foreach (['/usr/share/php/Illuminate/Events/autoload.php'] as $file) if (is_file($file)) require_once $file;
CODE
$capsule = new Illuminate\\Database\\Capsule\\Manager;
$capsule->addConnection(['driver' => 'pgsql', 'host' => getenv('PGHOST'), 'database' => getenv('PGDATABASE'),
    'username' => getenv('PGUSER'), 'charset' => 'utf8', 'schema' => 'public', 'search_path' => 'public'] /* before and since Laravel 9 */);
$container = new Illuminate\\Container\\Container;
$container->instance('db', $capsule->getDatabaseManager());
Illuminate\\Support\\Facades\\Facade::setFacadeApplication($container);
if (getenv('WIPE')) $capsule->getConnection()->getSchemaBuilder()->dropAllTables(); // as migrate:fresh does
foreach (array_slice($argv, 1) as $email) {
    try {
        echo place_order($email, '12.00'), "\\n";
    } catch (Illuminate\\Database\\QueryException $error) {
        echo "refused\\n";
    }
}
"""
SPRING = """
import org.postgresql.ds.PGSimpleDataSource;
import org.springframework.dao.DataAccessException;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jdbc.datasource.DataSourceTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;

public class Shop {
CODE
  public static void main(String[] emails) {
    PGSimpleDataSource source = new PGSimpleDataSource();
    source.setServerNames(new String[] {"127.0.0.1"});
    source.setPortNumbers(new int[] {Integer.parseInt(System.getenv("PORT"))});
    source.setDatabaseName(System.getenv("PGDATABASE"));
    source.setUser(System.getenv("PGUSER"));
    TransactionTemplate transactions = new TransactionTemplate(new DataSourceTransactionManager(source));
    for (String email : emails) {
      try {
        System.out.println(placeOrder(transactions, new JdbcTemplate(source), email, "12.00"));
      } catch (DataAccessException refused) {
        System.out.println("refused");
      }
    }
  }
}
"""
GO = """
package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"

	_ "github.com/lib/pq"
)

CODE

func main() {
	db, err := sql.Open("postgres", "sslmode=disable")
	if err != nil {
		panic(err)
	}
	for _, email := range os.Args[1:] {
		if order, err := placeOrder(context.Background(), db, email, "12.00"); err != nil {
			fmt.Println("refused")
		} else {
			fmt.Println(order)
		}
	}
}
"""


class Bridge(socketserver.BaseRequestHandler):
    """Connects a TCP client with the server's unix socket: Java knows no other sockets, and the server listens at no port."""

    def handle(self):
        with socket.socket(socket.AF_UNIX) as server:
            server.connect(f"{os.environ['PGHOST']}/.s.PGSQL.{os.environ.get('PGPORT', '5432')}")
            back = threading.Thread(target=self.carry, args=(server, self.request))
            back.start()
            self.carry(self.request, server)
            back.join()

    @staticmethod
    def carry(source, target):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)


class FrameworkTest(ShopTest):
    directory = None

    def setUp(self):
        super().setUp()
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name

    def write(self, name, text):
        path = os.path.join(self.directory, name)
        with open(path, 'w', encoding='utf-8') as file:
            file.write(text)
        return path

    def assert_one_of_two_orders(self, *command, **environment):
        """A good address gets its mail; a bad one takes its order along."""
        order, refused = self.run_as_app(*command, GOOD, BAD, **environment)
        self.assertEqual(refused, 'refused')
        self.assertEqual(len(self.messages()), 1)
        self.assert_receipt(self.messages()[0], order)
        self.assertEqual(self.token_count(), 1)
        self.assertEqual(self.psql('SELECT count(*) FROM orders').strip(), '1')


class RailsTest(FrameworkTest):
    needs = ['ruby', '-e', "require 'pg'; require 'active_record'"]

    def program(self):
        return self.write('shop.rb', RAILS.replace('CODE', code_block('ruby', 'class Order', 'docs/rails.md')))

    def test_an_order_and_its_receipt(self):
        self.assert_one_of_two_orders('ruby', self.program())

    def test_the_query_cache_swallows_no_mail(self):
        self.run_as_app('ruby', self.program(), TWICE='yes')
        self.assertEqual(len(self.messages()), 2)

    def test_dumping_and_loading_the_schema_leaves_mailroom_alone(self):
        schema = os.path.join(self.directory, 'schema.rb')
        self.psql('DROP TABLE accounts')
        self.run_as_app('ruby', self.program(), SCHEMA_FILE=schema)
        with open(schema, encoding='utf-8') as file:
            dumped = file.read()
        self.assertIn('create_table "orders"', dumped)
        self.assertNotIn('mailroom', dumped)
        self.assert_mails()

    def test_the_structure_has_nothing_of_mailroom(self):
        structure = os.path.join(self.directory, 'structure.sql')
        with open(os.path.join(ROOT, 'docs/rails.md'), encoding='utf-8') as page:
            self.assertIn('dump_schemas = "public"', page.read())
        # Its owner may dump all; without the setting Rails does.
        for schemas, has_ours in (('public', False), ('', True)):
            self.run_as_app('ruby', self.program(), STRUCTURE_FILE=structure, DUMP_SCHEMAS=schemas, PGUSER=os.environ['PGUSER'])
            with open(structure, encoding='utf-8') as file:
                self.assertEqual('mailroom_messages' in file.read(), has_ours)


class LaravelTest(FrameworkTest):
    needs = ['php', '-r', "extension_loaded('pdo_pgsql') || exit(1); require '/usr/share/php/Illuminate/Database/autoload.php';"]

    def test_an_order_and_its_receipt(self):
        self.assert_one_of_two_orders('php', self.program())

    def test_dropping_all_tables_leaves_mailroom_alone(self):
        # The owner of all: the role of the application could not drop more than its own.
        self.run_as_app('php', self.program(), WIPE='yes', PGUSER=os.environ['PGUSER'])
        self.assertEqual(self.psql("SELECT to_regclass('public.orders') IS NULL").strip(), 't')
        self.assert_mails()

    def program(self):
        return self.write('shop.php', LARAVEL.replace('CODE', code_block('php', 'place_order', 'docs/laravel.md')))


class SpringTest(FrameworkTest):
    needs = ['javac', '--version']

    def test_an_order_and_its_receipt(self):
        code = textwrap.indent(code_block('java', 'placeOrder', 'docs/spring.md'), '  ')
        path = ':'.join(JARS)
        subprocess.run(['javac', '-cp', path, '-d', self.directory, self.write('Shop.java', SPRING.replace('CODE', code))], check=True)
        with socketserver.ThreadingTCPServer(('127.0.0.1', 0), Bridge) as bridge:
            threading.Thread(target=bridge.serve_forever, daemon=True).start()
            self.assert_one_of_two_orders('java', '-cp', f'{path}:{self.directory}', 'Shop', PORT=str(bridge.server_address[1]))
            bridge.shutdown()


class GoTest(FrameworkTest):
    needs = ['go', 'version']

    def test_an_order_and_its_receipt(self):
        source = self.write('shop.go', GO.replace('CODE', code_block('go', 'func placeOrder', 'docs/go.md')))
        program = os.path.join(self.directory, 'shop')
        subprocess.run(['go', 'build', '-o', program, source], check=True,
                       env=dict(os.environ, GOPATH='/usr/share/gocode', GO111MODULE='off', GOFLAGS='', GOCACHE=self.directory + '/cache'))
        self.assert_one_of_two_orders(program)


def why_not(framework):
    """Why its test cannot run here, or nothing."""
    try:
        if subprocess.run(framework.needs, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode != 0:
            return f'{framework.needs[0]} lacks the libraries of the page'
    except FileNotFoundError:
        return f'there is no {framework.needs[0]}'
    if framework is SpringTest:
        lacking = [jar for jar in JARS if not os.path.exists(jar)]
        return f'there is no {lacking[0]}' if lacking else None
    if framework is GoTest and not os.path.isdir('/usr/share/gocode/src/github.com/lib/pq'):
        return 'there is no github.com/lib/pq in /usr/share/gocode'
    return None


if __name__ == '__main__':
    name = sys.argv[2]
    reason = why_not(globals()[name])
    if reason:
        sys.exit(print(f'NOT RUN: producers/{name[:-4].lower()}: {reason}'))
    main()
