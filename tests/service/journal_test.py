#!/usr/bin/python3
"""journal_test.py MAILROOM: runs mailroom with a stderr that is the journal, which this test plays, and checks the
entries. systemd's library knows one place for the journal's socket, so the test runs in a mount namespace of its own.
Needs a PostgreSQL in PGHOST and PGUSER.
"""

import contextlib
import os
import socket
import struct
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'support'))
from own_database import OwnDatabase  # noqa: E402

SOCKET = '/run/systemd/journal/socket'
DATABASE = OwnDatabase('journal_test')


def parse(datagram):
    """The fields of an entry: KEY=value lines, or KEY, a line end, the length, the value."""
    fields = {}
    while datagram:
        line, _, rest = datagram.partition(b'\n')
        name, equals, value = line.partition(b'=')
        if not equals:
            size = struct.unpack('<Q', rest[:8])[0]
            value, rest = rest[8:8 + size], rest[8 + size + 1:]
        fields[name.decode()] = value.decode()
        datagram = rest
    return fields


class Journal:
    def __init__(self):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(SOCKET)
        self.socket.bind(SOCKET)
        self.socket.setblocking(False)

    def entries(self):
        found = []
        with contextlib.suppress(BlockingIOError):
            while True:
                found.append(parse(self.socket.recv(1 << 16)))
        return found

    def close(self):
        self.socket.close()


class JournalTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        DATABASE.create(MAILROOM, MAILROOM_SECRET_KEY='ab' * 32)

    @classmethod
    def tearDownClass(cls):
        DATABASE.drop()

    def setUp(self):
        self.journal = Journal()
        self.addCleanup(self.journal.close)

    def mailroom(self, *arguments, is_journal=True, stdout_is_journal=False, **environment):
        """Returns the exit status, the entries of the journal, and what came on stderr."""
        with tempfile.TemporaryFile() as stderr:
            status = os.fstat(stderr.fileno())
            stream = f'{status.st_dev}:{status.st_ino + (0 if is_journal else 1)}'
            stdout = stderr if stdout_is_journal else subprocess.PIPE
            done = subprocess.run([MAILROOM, *arguments], stdout=stdout, stderr=stderr, check=False,
                                  env=dict(os.environ, JOURNAL_STREAM=stream, **environment))
            stderr.seek(0)
            return done.returncode, self.journal.entries(), stderr.read().decode()

    def test_log_lines_are_entries_with_fields(self):
        DATABASE.psql("INSERT INTO accounts (email, login) VALUES ('a@mail.example', 'a')")
        status, entries, stderr = self.mailroom('collect', '--once')
        self.assertEqual((status, stderr), (0, ''))
        emitted = [entry for entry in entries if entry['MESSAGE'].startswith('emitted ')]
        self.assertEqual(len(emitted), 1)
        for name, value in {'MESSAGE': 'emitted batches=1 tokens=1 skipped=0', 'PRIORITY': '6',
                            'MAILROOM_QUEUE': 'mailroom', 'MAILROOM_BATCHES': '1', 'MAILROOM_TOKENS': '1',
                            'SYSLOG_IDENTIFIER': 'mailroom'}.items():
            self.assertEqual(emitted[0].get(name), value, name)
        self.assertTrue(all(entry['MAILROOM_QUEUE'] == 'mailroom' for entry in entries))

    def test_the_error_that_ends_a_run_goes_through_the_stream(self):
        # Of an entry that a process sends just before its end, the journal may not find out the unit.
        status, entries, stderr = self.mailroom('collect', '--queue', 'absent')
        self.assertEqual(status, 3)
        self.assertTrue(all(int(entry['PRIORITY']) > 3 for entry in entries))
        error, hint = stderr.splitlines()
        self.assertEqual(error, '<3>error: unknown queue "absent"')
        self.assertTrue(hint.startswith('<3>hint: '), hint)

    def test_a_redirected_stderr_is_not_the_journal(self):
        status, entries, stderr = self.mailroom('collect', '--once', is_journal=False)
        self.assertEqual((status, entries), (0, []))
        self.assertIn(' connected\n', stderr)

    def test_tokens_do_not_go_to_the_journal(self):
        DATABASE.psql("INSERT INTO accounts (email, login) VALUES ('kept@mail.example', 'kept')")
        status, entries, stderr = self.mailroom('collect', '--once', stdout_is_journal=True)
        self.assertEqual((status, entries), (3, []))
        self.assertIn("<3>error: standard output is systemd's journal", stderr)
        self.assertIn('sink.exec', stderr)
        # A sink takes the tokens that standard output must not have.
        sender = 'sh -c "while read -r batch rest; do echo ok $batch >&3; done"'
        status, entries, stderr = self.mailroom('collect', '--once', '--exec', sender, stdout_is_journal=True)
        self.assertEqual((status, stderr), (0, ''))
        emitted = [entry['MAILROOM_TOKENS'] for entry in entries if entry['MESSAGE'].startswith('emitted ')]
        self.assertEqual(emitted, ['1'])

    def test_a_format_that_was_asked_for_stays(self):
        status, entries, stderr = self.mailroom('collect', '--once', MAILROOM_LOG_FORMAT='json')
        self.assertEqual((status, entries), (0, []))
        self.assertIn('"message":"connected"', stderr)


if __name__ == '__main__':
    MAILROOM = sys.argv[1]
    if len(sys.argv) == 2:
        # Others see nothing of the mounts that follow.
        user = [] if os.geteuid() == 0 else ['--map-root-user']
        if subprocess.run(['unshare', '--mount', *user, 'true'], stderr=subprocess.DEVNULL, check=False).returncode != 0:
            sys.exit(print('NOT RUN: no mount namespace is allowed here'))
        os.execvp('unshare', ['unshare', '--mount', *user, sys.executable, *sys.argv, '--inside'])
    subprocess.run(['mount', '-t', 'tmpfs', 'tmpfs', '/run'], check=True)
    os.makedirs(os.path.dirname(SOCKET))
    del sys.argv[1:]
    unittest.main()
