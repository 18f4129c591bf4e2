#!/usr/bin/python3
"""server_test.py SCRIPT [TEST...]: tests scripts/with-postfix or scripts/with-mailbox with Python's own SMTP client."""

import contextlib
import json
import os
import re
import shutil
import signal
import smtplib
import stat
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from email.message import EmailMessage

SCRIPT = ''
CHECK = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'check_maildir.py')
TIME_LIMIT = 60  # seconds, for what usually takes one or two
# Prints its own process, then what the script exports; ends with its stdin.
COMMAND = ['sh', '-c', 'echo $$; printf "%s\n" "$MAILROOM_TEST_RELAY" "$MAILROOM_TEST_MAILDIR"; '
           'echo "$MAILROOM_TEST_MAILLOG"; read -r status; exit "${status:-0}"']


class Server:
    """A running script. `end` ends its command; leaving the `with` block kills what is left."""

    def __init__(self, *options):
        self.script = subprocess.Popen([SCRIPT, *options, '--', *COMMAND], stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, text=True)
        lines = [self.script.stdout.readline().strip() for _ in range(4)]
        if not lines[3]:
            raise RuntimeError(f'{SCRIPT} did not start its command')
        self.command = int(lines[0])
        self.port = int(re.fullmatch(r'smtp://127\.0\.0\.1:(\d+)', lines[1])[1])
        self.maildir, self.log = lines[2:]
        self.directory = os.path.dirname(self.log)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.script.poll() is None:
            self.script.terminate()
        self.script.wait(TIME_LIMIT)
        self.script.stdin.close()
        self.script.stdout.close()

    def end(self, status=0):
        self.script.stdin.write(f'{status}\n')
        self.script.stdin.flush()
        return self.script.wait(TIME_LIMIT)

    def connect(self):
        session = smtplib.SMTP('127.0.0.1', self.port, local_hostname='client.test', timeout=TIME_LIMIT)
        session.ehlo()
        return session

    def processes(self):
        """The processes that work in the script's directory or have a file of it open."""
        return {pid for pid in filter(str.isdigit, os.listdir('/proc')) if self.uses_directory(f'/proc/{pid}')}

    def uses_directory(self, process):
        links = [f'{process}/cwd']
        with contextlib.suppress(OSError):
            links += [f'{process}/fd/{name}' for name in os.listdir(f'{process}/fd')]
        for link in links:
            with contextlib.suppress(OSError):
                if os.readlink(link).startswith(self.directory + '/'):
                    return True
        return False

    def mails(self, count):
        output = subprocess.run([CHECK, '--wait-for', str(count), self.maildir], stdout=subprocess.PIPE, text=True,
                                check=True).stdout
        return [json.loads(line) for line in output.splitlines()]


def why_unusable():
    """Returns why this machine cannot run the script, or None. A Postfix that is just missing is no reason."""
    if os.path.basename(SCRIPT) != 'with-postfix':
        return None
    if os.geteuid() != 0:
        return 'only root can start a Postfix'
    if not shutil.which('postconf', path='/usr/sbin:/usr/bin') and os.path.exists('/usr/sbin/sendmail'):
        return 'another mail server is installed'
    return None


def message(name):
    return (f'Message-ID: <{name}@client.test>\r\nDate: Sun, 06 Sep 2026 07:08:09 +0000\r\nFrom: a@client.test\r\n'
            f'To: {name}@example.org\r\nSubject: {name}\r\nMIME-Version: 1.0\r\n\r\nHello {name}.\r\n').encode()


def send(session, name):
    """Sends one mail and returns the server's queue id."""
    for code, reply in (session.mail('a@client.test'), session.rcpt(f'{name}@example.org')):
        if code != 250:
            raise AssertionError(f'refused: {code} {reply}')
    code, reply = session.data(message(name))
    if code != 250:
        raise AssertionError(f'refused: {code} {reply}')
    return re.fullmatch(r'2\.0\.0 Ok: queued as (\w+)', reply.decode())[1]


def is_alive(process):
    with contextlib.suppress(OSError), open(f'/proc/{process}/stat', encoding='utf-8', errors='replace') as file:
        return file.read().rpartition(') ')[2][0] != 'Z'
    return False


class ServerTest(unittest.TestCase):
    def setUp(self):
        reason = why_unusable()
        if reason:
            self.skipTest(reason)


class Receiving(ServerTest):
    def setUp(self):
        super().setUp()
        self.server = self.enterContext(Server())

    def test_accepts_a_mail_and_stores_it_as_it_was_sent(self):
        with self.server.connect() as session:
            queue_id = send(session, 'one')
        [mail] = self.server.mails(1)
        with open(self.server.log, encoding='utf-8') as log:
            self.assertRegex(log.read(), rf'{queue_id}: .*to=<one@example\.org>.* status=sent')
        self.assertEqual((mail['queue_id'], mail['message_id'], mail['text'], mail['envelope_from'],
                          mail['envelope_to'], mail['defects']),
                         (queue_id, '<one@client.test>', 'Hello one.\n', 'a@client.test', 'one@example.org', []))
        added = {'Return-Path', 'X-Original-To', 'Delivered-To', 'Received'}
        self.assertEqual([name for name, _ in mail['headers'] if name not in added],
                         ['Message-ID', 'Date', 'From', 'To', 'Subject', 'MIME-Version'])

    def test_adds_no_missing_header(self):
        with self.server.connect() as session:
            session.sendmail('a@client.test', 'two@example.org', b'Subject: two\r\n\r\nHello.\r\n')
        [mail] = self.server.mails(1)
        self.assertEqual((mail['message_id'], mail['date'], mail['from'], mail['to']), (None, None, None, None))

    def test_shows_what_the_reader_sees(self):
        mail = EmailMessage()
        mail['From'], mail['To'], mail['Subject'] = 'a@client.test', 'b@example.org', 'Größe'
        mail.set_content('Öffne https://app.test/a?token=one.\n')
        mail.add_alternative('<p>Öffne <a href="https://app.test/a?token=two&amp;b">dies</a></p>', subtype='html')
        with self.server.connect() as session:
            session.send_message(mail)
        [read] = self.server.mails(1)
        self.assertEqual(read['links'], ['https://app.test/a?token=one', 'https://app.test/a?token=two&b'])
        self.assertEqual(read['defects'], ['Date: 0 of these headers', 'Message-ID: 0 of these headers'])
        shown = subprocess.run([CHECK, '--show', '-1', self.server.maildir], stdout=subprocess.PIPE, text=True,
                               check=True)
        self.assertIn('Subject: Größe\n\nÖffne https://app.test/a?token=one.\n', shown.stdout)

    def test_takes_a_hundred_sessions_at_once(self):
        all_open = threading.Barrier(100, timeout=TIME_LIMIT)
        accepted = {}

        def run(name):
            with self.server.connect() as session:
                all_open.wait()
                accepted[f'<{name}@client.test>'] = send(session, name)

        threads = [threading.Thread(target=run, args=(f'name{n}',)) for n in range(100)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(2 * TIME_LIMIT)
        self.assertEqual(len(set(accepted.values())), 100)
        mails = self.server.mails(100)
        self.assertEqual(len(mails), 100)
        self.assertEqual({mail['message_id']: mail['queue_id'] for mail in mails}, accepted)

    def test_refuses_a_recipient_with_a_space(self):
        with self.server.connect() as session:
            session.mail('a@client.test')
            code, _ = session.docmd('RCPT', 'TO:<a b@example.org>')
            self.assertEqual(code, 501)
            # The session goes on; one in quotes is allowed.
            code, _ = session.docmd('RCPT', 'TO:<"a b"@example.org>')
            self.assertEqual(code, 250)
            session.rset()
            send(session, 'three')
        self.assertEqual([mail['envelope_to'] for mail in self.server.mails(1)], ['three@example.org'])

    def test_is_apart_from_another_one(self):
        with Server() as other:
            for server, name in ((self.server, 'mine'), (other, 'theirs')):
                with server.connect() as session:
                    send(session, name)
            self.assertEqual([mail['subject'] for mail in self.server.mails(1)], ['mine'])
            self.assertEqual([mail['subject'] for mail in other.mails(1)], ['theirs'])


class Ending(ServerTest):
    def expect_nothing_left(self, server):
        deadline = time.monotonic() + 10
        while server.processes() and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertEqual(server.processes(), set())
        self.assertFalse(is_alive(server.command))
        self.assertFalse(os.path.exists(server.directory))
        with self.assertRaises(ConnectionRefusedError):
            server.connect()

    def ended_by(self, end):
        with Server() as server:
            with server.connect() as session:
                send(session, 'last')
            self.assertNotEqual(server.processes(), set())
            self.assertTrue(is_alive(server.command))
            end(server)
            status = server.script.wait(TIME_LIMIT)
            self.expect_nothing_left(server)
            return status

    def test_after_a_command_that_succeeds(self):
        self.assertEqual(self.ended_by(lambda server: server.end()), 0)

    def test_after_a_command_that_fails(self):
        self.assertEqual(self.ended_by(lambda server: server.end(3)), 3)

    def test_after_a_command_that_is_killed(self):
        self.assertEqual(self.ended_by(lambda server: os.kill(server.command, signal.SIGKILL)), 137)

    def test_when_it_is_itself_told_to_stop(self):
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            with self.subTest(signal=number.name):
                status = self.ended_by(lambda server, number=number: server.script.send_signal(number))
                self.assertEqual(status, 128 + number)

    def test_keeps_the_mails_in_a_directory_of_the_caller(self):
        with tempfile.TemporaryDirectory(dir='/tmp') as directory:
            os.chmod(directory, 0o711)
            maildir = os.path.join(directory, 'kept')
            with Server('--maildir', maildir) as server:
                self.assertEqual(server.maildir, maildir)
                with server.connect() as session:
                    accepted = {send(session, f'name{n}') for n in range(20)}
                server.end()
                self.expect_nothing_left(server)
                self.assertEqual({mail['queue_id'] for mail in server.mails(20)}, accepted)


def run_script(*arguments):
    result = subprocess.run([SCRIPT, *arguments], stderr=subprocess.PIPE, text=True, check=False)
    return result.returncode, result.stderr


class Failing(ServerTest):
    def test_reports_a_command_that_does_not_exist(self):
        self.assertEqual(run_script('/no/such/command')[0], 127)

    def test_refuses_a_maildir_that_it_cannot_make(self):
        status, errors = run_script('--maildir', '/proc/none', 'true')
        self.assertEqual(status, 1)
        self.assertRegex(errors, r'/proc/none: .*\nhint: give a directory')


class Refusing(unittest.TestCase):
    def test_refuses_a_wrong_usage(self):
        name = os.path.basename(SCRIPT)
        options = '[--maildir DIR]' + (' [--next HOST:PORT] [--milter HOST:PORT] [--hold]' if name == 'with-postfix' else '')
        usage = f'hint: usage: {name} {options} COMMAND [ARG...]\n'
        for arguments in ([], ['--maildir'], ['--nope', 'true'], ['--']):
            with self.subTest(arguments=arguments):
                status, errors = run_script(*arguments)
                self.assertEqual(status, 2)
                self.assertTrue(errors.startswith(os.path.basename(SCRIPT) + ': '))
                self.assertTrue(errors.endswith(usage))

    def test_run_by_another_user_than_root(self):
        with tempfile.TemporaryDirectory(dir='/tmp') as directory:
            os.chmod(directory, 0o755)
            copy = os.path.join(directory, os.path.basename(SCRIPT))
            for path in (SCRIPT, os.path.join(os.path.dirname(SCRIPT), 'run_command.bash')):
                shutil.copy(path, directory)
            os.chmod(copy, stat.S_IRWXU | 0o55)
            other = {'user': 65534, 'group': 65534, 'extra_groups': []} if os.geteuid() == 0 else {}
            result = subprocess.run([copy, 'id', '-u'], cwd='/tmp', capture_output=True, text=True, check=False,
                                    **other)
        if copy.endswith('with-postfix'):
            self.assertEqual(result.returncode, 1)
            self.assertRegex(result.stderr, r'^with-postfix: only root .*\nhint: .*with-mailbox')
        else:
            self.assertEqual((result.stdout, result.stderr), (f'{os.geteuid() or 65534}\n', ''))


if __name__ == '__main__':
    SCRIPT = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
