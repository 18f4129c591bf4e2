"""A synchronous standby of the server of a machine, which has power."""

import os
import signal
import subprocess

from forgetful_disk import DIES_WITH_PARENT
from machine import eventually, run


class Standby:
    def __init__(self, machine):
        self.machine = machine
        self.data = f'{machine.directory}/standby'
        self.sockets = f'{machine.directory}/sockets'
        self.dsn = f'host={self.sockets},{self.sockets} port=5432,5433 target_session_attrs=read-write user=postgres'
        self.process = None

    def _psql(self, sql, port=5432):
        return run('psql', '-XAtq', '-h', self.sockets, '-p', str(port), '-U', 'postgres', '-c', sql).strip()

    def start(self):
        user = self.machine.as_owner()
        os.mkdir(self.data, 0o700)
        os.chown(self.data, self.machine.owner.pw_uid, self.machine.owner.pw_gid)
        run(*user, f'{self.machine.bin}/pg_basebackup', '-h', self.sockets, '-U', 'postgres', '-D', self.data, '-R', '-c', 'fast', '--no-sync')
        log = open(f'{self.machine.directory}/standby.log', 'ab')
        self.process = subprocess.Popen([*user, *DIES_WITH_PARENT, f'{self.machine.bin}/postgres', '-D', self.data, '-c', 'port=5433'], stdin=subprocess.DEVNULL,
                                        stdout=log, stderr=log, cwd='/')
        self._psql("ALTER SYSTEM SET synchronous_standby_names = '*'")
        self._psql('SELECT pg_reload_conf()')
        if not eventually(lambda: self._psql('SELECT sync_state FROM pg_stat_replication') == 'sync'):
            raise AssertionError('the standby does not follow')

    def leave(self):
        """It receives nothing any more, and nobody waits for it."""
        self._psql("ALTER SYSTEM SET synchronous_standby_names = ''")
        self._psql("ALTER SYSTEM SET primary_conninfo = ''", 5433)
        for port in (5432, 5433):
            self._psql('SELECT pg_reload_conf()', port)
        if not eventually(lambda: self._psql('SELECT count(*) FROM pg_stat_replication') == '0'):
            raise RuntimeError('the standby still follows')

    def promote(self):
        # It would wait for a standby in its turn.
        with open(f'{self.data}/postgresql.auto.conf', 'a', encoding='ascii') as file:
            file.write("synchronous_standby_names = ''\n")
        run(*self.machine.as_owner(), f'{self.machine.bin}/pg_ctl', '-D', self.data, '-w', 'promote')

    def close(self):
        if self.process is not None:
            self.process.send_signal(signal.SIGQUIT)
            self.process.wait(20)
