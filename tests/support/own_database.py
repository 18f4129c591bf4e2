"""A migrated database for the tests of a class. Needs a PostgreSQL in PGHOST and PGUSER."""

import os
import subprocess


def run(*command, **options):
    """What a command that must succeed has printed."""
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, **options).stdout


class OwnDatabase:
    """Exists from create() to drop(); meanwhile mailroom has only this database and `settings` in its environment."""

    def __init__(self, purpose):
        self.name = f'{purpose}_{os.getpid()}'

    def create(self, mailroom, **settings):
        run('createdb', self.name)
        for variable in list(os.environ):
            if variable.startswith('MAILROOM_') and not variable.startswith('MAILROOM_TEST_'):
                del os.environ[variable]
        os.environ.update(MAILROOM_DATABASE_URL=f'dbname={self.name}', **settings)
        run(mailroom, 'migrate')

    def drop(self):
        run('dropdb', self.name)

    def psql(self, sql, database=None):
        return run('psql', '-XAtqF', '\t', '-d', database or self.name, '-c', sql)
