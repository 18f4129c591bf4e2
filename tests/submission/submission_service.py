"""A `mailroom submission` for tests, at ports that are free, and the server that it stores in: that of with-postgres, for this test alone."""

import json
import os
import signal
import subprocess
import sys
import threading
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'support'))
from own_database import run  # noqa: E402

MAILROOM = sys.argv[1]
PATIENCE = 30


def eventually(condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def ask_for_passwords(database, trusted):
    """Of all roles but the superuser and those, whom anybody may be."""
    hba = os.path.join(os.environ['MAILROOM_TEST_PGDATA'], 'pg_hba.conf')
    with open(hba, 'w', encoding='ascii') as file:
        file.write(f'local all {os.environ["PGUSER"]},{trusted} trust\nlocal all all scram-sha-256\n')
    database.psql('SELECT pg_reload_conf()')


def make_certificate(directory, name):
    key, certificate = f'{directory}/{name}.key', f'{directory}/{name}.crt'
    subprocess.run(['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', key,
                    '-out', certificate, '-days', '3', '-subj', f'/CN={name}',
                    '-addext', f'subjectAltName=DNS:{name}'], check=True, capture_output=True)
    os.chmod(key, 0o600)
    return key, certificate


class Submission:
    """Started with `doors` and settings; ports[i] is that of the i-th door."""

    def __init__(self, doors, **settings):
        environment = dict(os.environ, MAILROOM_SUBMISSION_LISTEN=','.join(doors), MAILROOM_LOG_FORMAT='json', **settings)
        self.process = subprocess.Popen([MAILROOM, 'submission'], env=environment, stderr=subprocess.PIPE, text=True)
        self.lines = []
        self.ports = []
        self._has_begun = threading.Event()
        self._reader = threading.Thread(target=self._read, args=(len(doors),))
        self._reader.start()
        if not self._has_begun.wait(PATIENCE) or len(self.ports) < len(doors):
            self.kill()
            raise AssertionError(f'it did not start: {self.lines}')

    def _read(self, doors):
        for line in self.process.stderr:
            entry = json.loads(line) if line.startswith('{') else {'message': line}
            self.lines.append(entry)
            if entry.get('message') == 'takes mails':
                at = entry['at'].rpartition(':')[2]
                self.ports.append(int(at) if at.isdigit() else at)
            if str(entry.get('message')).startswith('takes mails') and len(self.ports) == doors:
                self._has_begun.set()
        self._has_begun.set()

    def said(self, message):
        return any(entry.get('message') == message for entry in self.lines)

    def kill(self):
        self.process.kill()
        self._end()

    def stop(self):
        """SIGTERM; the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self._end()

    def _end(self):
        code = self.process.wait(PATIENCE)
        self._reader.join()
        self.process.stderr.close()
        return code


def kill_server():
    """Kills the postmaster, and starts it again, which recovers what was committed."""
    data = os.environ['MAILROOM_TEST_PGDATA']
    with open(f'{data}/postmaster.pid', encoding='ascii') as file:
        os.kill(int(file.readline()), signal.SIGKILL)
    owner = os.stat(data)

    def start():
        # Refused while a session of the server that died is still about to end.
        return subprocess.run(['pg_ctl', '-D', data, '-l', f'{data}/../server.log', '-w', '-t', '60', 'start'], cwd=data,
                              user=owner.st_uid, group=owner.st_gid, extra_groups=[], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, check=False).returncode == 0
    if not eventually(start):
        raise AssertionError('the server does not start')


__all__ = ['MAILROOM', 'PATIENCE', 'Submission', 'ask_for_passwords', 'eventually', 'kill_server', 'make_certificate', 'run']
