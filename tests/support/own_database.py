"""A migrated database for the tests of a class. Needs a PostgreSQL in PGHOST and PGUSER."""

import atexit
import os
import subprocess


def run(*command, **options):
    """What a command that must succeed has printed."""
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, **options).stdout


class OwnDatabase:
    """Exists from create() to drop(); meanwhile mailroom has only this database and `settings` in its environment."""

    made = set()  # the databases that are copied: that takes a fraction of a migration

    def __init__(self, purpose):
        self.name = f'{purpose}_{os.getpid()}'

    def create(self, mailroom, **settings):
        for variable in list(os.environ):
            if variable.startswith('MAILROOM_') and not variable.startswith('MAILROOM_TEST_'):
                del os.environ[variable]
        os.environ.update(settings)
        schema = settings.get('MAILROOM_DATABASE_SCHEMA', 'public')
        template = f'{self.name}_of_{schema}'
        if template not in self.made:
            self._migrate(mailroom, template)
        run('createdb', '--template', template, self.name)
        # What every copy is until it is adopted.
        self.psql(f'UPDATE {schema}.mailroom_home SET database = (SELECT oid FROM pg_database WHERE datname = current_database())')
        os.environ['MAILROOM_DATABASE_URL'] = f'dbname={self.name}'

    def _migrate(self, mailroom, name):
        run('createdb', name)
        atexit.register(run, 'dropdb', name)
        run(mailroom, 'migrate', env={**os.environ, 'MAILROOM_DATABASE_URL': f'dbname={name}'})
        self.made.add(name)

    def make_roles(self, mailroom):
        """Those of `mailroom init --roles`, whose names begin with the database's: roles belong to the cluster, where other tests run."""
        run(mailroom, 'init', '--roles', '--prefix', self.name)

    def drop(self):
        """Also its roles, and logins of such a name."""
        run('dropdb', self.name)
        roles = self.psql(f"SELECT string_agg(quote_ident(rolname), ', ') FROM pg_roles WHERE starts_with(rolname, '{self.name}_')",
                          'postgres').strip()
        if roles:
            self.psql(f'DROP ROLE {roles}', 'postgres')

    def psql(self, sql, database=None):
        return run('psql', '-XAtqF', '\t', '-d', database or self.name, '-c', sql)
