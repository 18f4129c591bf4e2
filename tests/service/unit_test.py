#!/usr/bin/python3
"""unit_test.py SOURCE MAILROOM: checks the units with systemd-analyze, and plays what the documents say of them: the
command of each unit starts and stops, and the example of a sender delivers every token. Needs a PostgreSQL in PGHOST and
PGUSER.
"""

import glob
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'support'))
from own_database import OwnDatabase  # noqa: E402

SOURCE, MAILROOM = sys.argv[1], sys.argv[2]
DATABASE = OwnDatabase('unit_test')
UNITS = f'{SOURCE}/packaging/systemd'
EXAMPLES = f'{SOURCE}/examples/systemd'
# What systemd itself brings, and our units refer to.
TARGETS = ('basic', 'multi-user', 'network-online', 'shutdown', 'sockets', 'sysinit')
SERVICES = ('mailroom-collect@.service', 'mailroom-handover@.service', 'mailroom-send@.service', 'mailroom-bounce.service',
            'mailroom-desk.service', 'mailroom-submission.service')
PATIENCE = 60


def read(path):
    with open(path, encoding='utf-8') as file:
        return file.read()


def settings(unit, name):
    """The values of NAME= in a unit, in order."""
    return re.findall(rf'^{name}=(.*)$', read(unit), re.MULTILINE)


def eventually(condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


class AnalyzeTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name
        for path in glob.glob(f'{UNITS}/*') + glob.glob(f'{EXAMPLES}/*.service'):
            text = read(path)
            # Neither is installed here.
            text = text.replace('/usr/bin/mailroom', MAILROOM)
            text = text.replace('/usr/share/doc/mailroom/examples/systemd', EXAMPLES)
            text = text.replace('User=mailroom', f'User={os.getuid()}')
            with open(os.path.join(self.directory, os.path.basename(path)), 'w', encoding='utf-8') as file:
                file.write(text)
        for target in TARGETS:
            with open(os.path.join(self.directory, f'{target}.target'), 'w', encoding='ascii') as file:
                file.write(f'[Unit]\nDescription={target}\n')

    def unit(self, name):
        """The path of a unit, of a template that of an instance."""
        path = os.path.join(self.directory, name.replace('@.', '@mailroom.'))
        if '@.' in name:
            shutil.copy(os.path.join(self.directory, name), path)
        return path

    def analyze(self, *arguments):
        # Without a colon at its end: other units of this machine may have defects.
        return subprocess.run(['systemd-analyze', *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, check=False, env=dict(os.environ, SYSTEMD_UNIT_PATH=self.directory))

    def test_the_units_have_no_defects(self):
        names = [*SERVICES, 'mailroom-submission.socket', 'mailroom-sender@.socket', 'mailroom-sender@.service']
        verified = self.analyze('verify', '--man=no', *[self.unit(name) for name in names])
        self.assertEqual((verified.returncode, verified.stdout), (0, ''))

    def test_the_services_are_hardened(self):
        for name in SERVICES:
            judged = self.analyze('security', '--offline=true', '--threshold=20', self.unit(name))
            self.assertEqual(judged.returncode, 0, judged.stdout)
            score = re.search(r'Overall exposure level for .*: ([0-9.]+)', judged.stdout)
            self.assertLessEqual(float(score[1]), 2.0)

    def test_all_services_have_the_same_sandbox(self):
        def sandbox(name):
            lines = read(f'{UNITS}/{name}').partition('\nNoNewPrivileges')[2].splitlines()
            self.assertTrue(lines)
            return lines
        collect, handover, send, bounce, desk, submission = (sandbox(name) for name in SERVICES)
        self.assertEqual(send, collect)
        self.assertEqual(bounce, collect)
        self.assertEqual(desk, collect)
        # The user at the other end of a unix socket has his name outside of a namespace alone.
        self.assertEqual([line for line in submission if not line.startswith('Also=')], [line for line in collect if line != 'PrivateUsers=yes'])
        # The program that it starts may compile at run time.
        self.assertEqual(handover, [line for line in collect if line != 'MemoryDenyWriteExecute=yes'])

    def test_no_restart_helps_against_a_wrong_configuration(self):
        for name in SERVICES:
            prevented = settings(f'{UNITS}/{name}', 'RestartPreventExitStatus')
            self.assertEqual(prevented, ['2 3 5 CREDENTIALS'])


class PlayTest(unittest.TestCase):
    """Starts what the units start, as far as that needs no systemd."""

    @classmethod
    def setUpClass(cls):
        DATABASE.create(MAILROOM)

    @classmethod
    def tearDownClass(cls):
        DATABASE.drop()

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name
        self.credentials = os.path.join(self.directory, 'credentials')
        os.mkdir(self.credentials)
        for part in ('cur', 'new', 'tmp'):
            os.makedirs(os.path.join(self.directory, 'bounces', part))

    def command(self, unit):
        (line,) = settings(f'{UNITS}/{unit}', 'ExecStart')
        line = line.replace('${STATE_DIRECTORY}', os.path.join(self.directory, 'bounces'))
        return line.replace('/usr/bin/mailroom', MAILROOM).split()

    def start(self, unit, stdout, log):
        manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(manager.close)
        path = os.path.join(self.directory, 'notify')
        manager.bind(path)
        environment = dict(os.environ, NOTIFY_SOCKET=path, CREDENTIALS_DIRECTORY=self.credentials,
                           MAILROOM_CONFIG=f'{SOURCE}/packaging/debian/mailroom.yaml', MAILROOM_QUEUE_NAME='mailroom',
                           MAILROOM_SUBMISSION_LISTEN='127.0.0.1:0', MAILROOM_DESK_LISTEN='127.0.0.1:0', MAILROOM_SUBMISSION_CERTIFICATE='credentials/smtp.crt',
                           MAILROOM_SUBMISSION_KEY='credentials/smtp.key')
        process = subprocess.Popen(self.command(unit), env=environment, stdout=stdout, stderr=log)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process, manager

    def wait_until_ready(self, manager):
        received = b''
        while b'READY=1' not in received:
            ready, _, _ = select.select([manager], [], [], PATIENCE)
            self.assertTrue(ready, received)
            received += manager.recv(4096) + b'\n'

    def test_the_sender_of_the_example_delivers_every_token(self):
        key = os.path.join(self.credentials, 'mailroom_signing.key')
        with open(key, 'w', encoding='ascii') as file:
            file.write('ab' * 32)
        os.chmod(key, 0o440)
        fifo = os.path.join(self.directory, 'fifo')
        os.mkfifo(fifo)
        # As systemd holds it.
        held = os.open(fifo, os.O_RDWR)
        self.addCleanup(os.close, held)
        delivered = os.path.join(self.directory, 'delivered')

        def start_sender():
            with open(delivered, 'a', encoding='utf-8') as output:
                sender = subprocess.Popen([f'{EXAMPLES}/mail-sender'], stdin=held, stdout=output)
            self.addCleanup(sender.wait)
            self.addCleanup(sender.kill)
            return sender

        def insert(numbers):
            values = ', '.join(f"('user{n}@mail.example', 'user{n}')" for n in numbers)
            DATABASE.psql(f'INSERT INTO accounts (email, login) VALUES {values}')

        sender = start_sender()
        with open(fifo, 'wb') as stdout:
            collector, manager = self.start('mailroom-collect@.service', stdout, None)
        self.wait_until_ready(manager)
        insert(range(100))
        self.assertTrue(eventually(lambda: len(read(delivered).splitlines()) == 100))
        # While the sender is away, lines wait in the pipe.
        sender.send_signal(signal.SIGTERM)
        self.assertEqual(sender.wait(PATIENCE), 0)
        insert(range(100, 200))
        waiting = "SELECT count(*) FROM mailroom_batches WHERE emitted_at IS NOT NULL"
        self.assertTrue(eventually(lambda: int(DATABASE.psql(waiting)) >= 20))
        sender = start_sender()
        self.assertTrue(eventually(lambda: len(read(delivered).splitlines()) > 100))
        # Stopped like units: the collector first; the sender empties the pipe.
        collector.send_signal(signal.SIGTERM)
        self.assertEqual(collector.wait(PATIENCE), 0)
        sender.send_signal(signal.SIGTERM)
        self.assertEqual(sender.wait(PATIENCE), 0)
        lines = read(delivered).splitlines()
        self.assertEqual(sorted(lines), sorted(f'would mail the activation link to user{n}@mail.example'
                                               for n in range(200)))

    def test_a_missing_credential_is_named_and_not_retried(self):
        for unit in set(SERVICES) - {'mailroom-desk.service'}:
            with tempfile.TemporaryFile() as log:
                process, manager = self.start(unit, subprocess.DEVNULL, log)
                status = process.wait(PATIENCE)
                log.seek(0)
                message = log.read().decode()
            self.assertIn(str(status), settings(f'{UNITS}/{unit}', 'RestartPreventExitStatus')[0].split())
            self.assertEqual(status, 3)
            self.assertRegex(message, 'cannot read the key file .*credentials/signing.key: No such file or directory'
                             if 'submission' not in unit else 'cannot use credentials/smtp.crt for TLS: .*No such file')
            manager.close()
            os.unlink(os.path.join(self.directory, 'notify'))

    def test_the_desk_needs_no_credential(self):
        desk, manager = self.start('mailroom-desk.service', subprocess.DEVNULL, None)
        self.wait_until_ready(manager)
        desk.send_signal(signal.SIGTERM)
        self.assertEqual(desk.wait(PATIENCE), 0)


if __name__ == '__main__':
    del sys.argv[1:]
    unittest.main()
