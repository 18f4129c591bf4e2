#!/usr/bin/python3
"""mailbox_test.py SOURCE MAILROOM: reads bounces with `mailroom bounce --imap` and `--pop3` from a real Dovecot
(scripts/with-dovecot), as the role of docs/security.md, and kills the reader and cuts its connection in between. Needs a
PostgreSQL in PGHOST and PGUSER.
"""

import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
import unittest

sys.dont_write_bytecode = True
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'support'))
from own_database import OwnDatabase, run  # noqa: E402

SOURCE, MAILROOM = sys.argv[1], sys.argv[2]
DATABASE = OwnDatabase('mailbox_test')
ROLE = f'mailroom_mailbox_{os.getpid()}'
PATIENCE = 30
REPORT = '''Return-Path: <>
From: MAILER-DAEMON@mx.example
To: {to}
Subject: Undelivered Mail Returned to Sender
MIME-Version: 1.0
Content-Type: multipart/report; report-type=delivery-status; boundary=B

--B
Content-Type: message/delivery-status

Reporting-MTA: dns; mx.example

Final-Recipient: rfc822; {address}
Action: failed
Status: 5.1.1
Diagnostic-Code: smtp; 550 5.1.1 User unknown

--B--
{more}'''
LETTER = 'From: ada@mail.example\nTo: no-reply@app.example\nSubject: Hello\n\nIs this yours?\n'


class Middle:
    """A server between mailroom and Dovecot that sees what is said. `on_command` gets each line of the client before it is
    passed on; if it returns False both connections are cut. `cut_after`: the same behind so many octets of the server.
    """

    def __init__(self, url, certificate, on_command=lambda line: True, cut_after=None):
        self.target = ('127.0.0.1', int(url.rsplit(':', 1)[1]))
        self.on_command, self.cut_after = on_command, cut_after
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(certificate, os.path.join(os.path.dirname(certificate), 'key.pem'))
        self.listener = socket.create_server(('127.0.0.1', 0))
        self.url = f'{url.rsplit(":", 1)[0]}:{self.listener.getsockname()[1]}'
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                plain, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(plain,), daemon=True).start()

    def serve(self, plain):
        trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        trusting.check_hostname = False
        trusting.verify_mode = ssl.CERT_NONE
        try:
            client = self.context.wrap_socket(plain, server_side=True)
            server = trusting.wrap_socket(socket.create_connection(self.target))
        except OSError:
            return

        def end():
            for each in (client, server):
                try:
                    each.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

        def to_client():
            passed = 0
            try:
                while data := server.recv(4096):
                    if self.cut_after is not None and passed + len(data) > self.cut_after:
                        client.sendall(data[:self.cut_after - passed])
                        break
                    passed += len(data)
                    client.sendall(data)
            except OSError:
                pass
            end()

        threading.Thread(target=to_client, daemon=True).start()
        waiting = b''
        try:
            while data := client.recv(4096):
                waiting += data
                while b'\n' in waiting:
                    line, _, waiting = waiting.partition(b'\n')
                    if not self.on_command(line.decode('ascii', 'replace')):
                        return end()
                    server.sendall(line + b'\n')
        except OSError:
            pass
        end()

    def close(self):
        self.listener.close()


class MailboxTest(unittest.TestCase):
    """Each test has an empty mailbox and an empty record."""

    @classmethod
    def setUpClass(cls):
        cls.imap, cls.pop3 = os.environ['MAILROOM_TEST_IMAP'], os.environ['MAILROOM_TEST_POP3']
        cls.directory = os.environ['MAILROOM_TEST_MAILBOX']
        cls.certificate = os.environ['MAILROOM_TEST_MAILBOX_CA']
        cls.owner = os.environ['MAILROOM_TEST_MAILBOX_OWNER']
        DATABASE.create(MAILROOM, MAILROOM_SECRET_KEY='ab' * 32, MAILROOM_SEND_FROM='no-reply@app.example',
                        MAILROOM_SEND_BOUNCE_ADDRESS='bounce+{id}@app.example')
        DATABASE.make_roles(MAILROOM)
        DATABASE.psql(f'CREATE ROLE {ROLE} LOGIN IN ROLE {DATABASE.name}_bouncer')
        cls.captured = f'/tmp/mailroom-captured-{os.getpid()}'

    @classmethod
    def tearDownClass(cls):
        DATABASE.psql(f'DROP OWNED BY {ROLE}; DROP ROLE {ROLE}')
        DATABASE.drop()
        shutil.rmtree(cls.captured, ignore_errors=True)

    def setUp(self):
        for name in os.listdir(self.directory):
            shutil.rmtree(f'{self.directory}/{name}') if os.path.isdir(f'{self.directory}/{name}') else \
                os.remove(f'{self.directory}/{name}')
        for part in ('new', 'cur', 'tmp'):
            os.mkdir(f'{self.directory}/{part}', 0o700)
            shutil.chown(f'{self.directory}/{part}', self.owner)
        DATABASE.psql('TRUNCATE mailroom_bounces, mailroom_suppressions')
        self.put_count = 0

    def put(self, text):
        """Puts a mail into INBOX."""
        self.put_count += 1
        path = f'{self.directory}/new/{time.time_ns()}.{self.put_count}.test'
        with open(path, 'w', encoding='utf-8') as file:
            file.write(text)
        shutil.chown(path, self.owner)

    def put_report(self, address, more=''):
        """Mails to the address, and puts the report into INBOX that comes back."""
        DATABASE.psql(f"SELECT mailroom_send(ARRAY['{address}'], subject => 'x', text => 'y')")
        before = set(os.listdir(f'{self.captured}/new')) if os.path.isdir(self.captured) else set()
        run(MAILROOM, 'send', '--capture', self.captured, '--once', '-q')
        for name in set(os.listdir(f'{self.captured}/new')) - before:
            with open(f'{self.captured}/new/{name}', encoding='utf-8') as file:
                sender = re.search(r'^Return-Path: <(.*?)>', file.read(), re.MULTILINE)[1]
        self.put(REPORT.format(to=sender, address=address, more=more))

    def environment(self, **more):
        return dict(os.environ, MAILROOM_DATABASE_URL=f'dbname={DATABASE.name} user={ROLE}',
                    MAILROOM_BOUNCE_PASSWORD_FILE=os.environ['MAILROOM_TEST_MAILBOX_PASSWORD_FILE'],
                    MAILROOM_BOUNCE_CA_FILE=self.certificate, **more)

    def read(self, *words, status=0, **more):
        """Runs `mailroom bounce` once, and returns what it says."""
        done = subprocess.run((MAILROOM, 'bounce', *words, '--once'), env=self.environment(**more), text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE)
        self.assertEqual(done.returncode, status, done.stdout)
        return done.stdout

    def mails(self, folder=''):
        """The flags of the mails in a folder, in alphabetical order; none are of a new mail."""
        base = f'{self.directory}/{folder}'
        names = os.listdir(f'{base}/new') + os.listdir(f'{base}/cur') if os.path.isdir(base) else []
        return sorted(name.partition(':2,')[2] for name in names)

    def recorded(self):
        return int(DATABASE.psql('SELECT count(*) FROM mailroom_bounces'))

    def eventually(self, condition):
        deadline = time.monotonic() + PATIENCE
        while not condition():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)

    def test_mails_are_marked_as_in_a_maildir(self):
        self.put_report('gone@mail.example')
        self.put(REPORT.format(to='no-reply@app.example', address='unknown@mail.example', more=''))
        self.put(LETTER)
        self.read('--imap', f'{self.imap}/INBOX')
        self.assertEqual(self.mails(), ['FS', 'FS', 'S'])
        self.assertEqual(DATABASE.psql('SELECT address FROM mailroom_suppressions').split(), ['gone@mail.example'])
        self.assertEqual(self.recorded(), 2)

    def test_mails_are_moved(self):
        self.put_report('moved@mail.example')
        self.put(LETTER)
        self.read('--imap', self.imap, '--done', 'Done', '--others', 'Not ours')
        self.assertEqual([len(self.mails(folder)) for folder in ('', '.Done', '.Not ours')], [0, 1, 1])

    def test_mails_are_removed_and_others_stay(self):
        self.put_report('removed@mail.example')
        self.put(LETTER)
        self.read('--imap', self.imap, '--delete')
        self.assertEqual(self.mails(), ['FS'])

    def test_a_mail_is_marked_only_after_it_is_on_record(self):
        for number in range(3):
            self.put_report(f'order{number}@mail.example')
        seen = []

        def look(line):
            if 'STORE' in line:
                seen.append(self.recorded())
            return True

        middle = Middle(self.imap, self.certificate, look)
        self.read('--imap', middle.url)
        middle.close()
        self.assertEqual(seen, [3])

    def test_a_kill_between_record_and_mark_makes_no_second_record(self):
        self.put_report('killed@mail.example')
        killed = []

        def kill(line):
            if 'STORE' not in line:
                return True
            killed.append(self.recorded())
            reader.send_signal(signal.SIGKILL)
            return False

        middle = Middle(self.imap, self.certificate, kill)
        reader = subprocess.Popen((MAILROOM, 'bounce', '--imap', middle.url), env=self.environment(),
                                  stderr=subprocess.DEVNULL)
        self.assertEqual(reader.wait(PATIENCE), -signal.SIGKILL)
        middle.close()
        self.assertEqual((killed, self.mails()), ([1], ['']))
        self.read('--imap', self.imap)
        self.assertEqual((self.recorded(), self.mails()), (1, ['S']))

    def test_a_new_uidvalidity_after_a_kill_makes_no_second_record(self):
        self.put_report('first@mail.example')
        self.put_report('second@mail.example')
        middle = Middle(self.imap, self.certificate, lambda line: 'STORE' not in line)
        self.read('--imap', middle.url, status=4)
        middle.close()
        self.assertEqual(self.recorded(), 2)
        for name in os.listdir(self.directory):
            if name.startswith('dovecot'):
                os.remove(f'{self.directory}/{name}')
        self.read('--imap', self.imap)
        self.assertEqual((self.recorded(), self.mails()), (2, ['S', 'S']))

    def test_connections_that_are_cut_repeat_nothing(self):
        for number in range(4):
            self.put_report(f'cut{number}@mail.example')
        self.put(LETTER)
        for cut_after in range(100, 8000, 450):
            middle = Middle(self.imap, self.certificate, cut_after=cut_after)
            done = subprocess.run((MAILROOM, 'bounce', '--imap', middle.url, '--once'), env=self.environment(), text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE)
            middle.close()
            self.assertIn(done.returncode, (0, 1, 3, 4), done.stdout)
        self.read('--imap', self.imap)
        self.assertEqual((self.recorded(), self.mails()), (4, ['FS', 'S', 'S', 'S', 'S']))

    def test_a_wrong_login_and_a_wrong_certificate_are_refused(self):
        self.put_report('refused@mail.example')
        with open(f'{self.captured}/wrong', 'w', encoding='utf-8') as file:
            os.fchmod(file.fileno(), 0o600)
            file.write('wrong')
        wrong = {'MAILROOM_BOUNCE_PASSWORD_FILE': f'{self.captured}/wrong'}
        environment = dict(self.environment(), **wrong)
        for url in ('--imap', self.imap), ('--pop3', self.pop3):
            done = subprocess.run((MAILROOM, 'bounce', *url, '--once'), env=environment, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE)
            self.assertEqual(done.returncode, 3, done.stdout)
            self.assertIn('refuses the login of the mailbox', done.stdout)
            self.assertNotIn('wrong\n', done.stdout)
        environment = self.environment()
        del environment['MAILROOM_BOUNCE_CA_FILE']
        done = subprocess.run((MAILROOM, 'bounce', '--imap', self.imap, '--once'), env=environment, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE)
        self.assertEqual(done.returncode, 3, done.stdout)
        self.assertIn('has a certificate that is not accepted', done.stdout)
        said = self.read('--imap', self.imap.replace('localhost', '127.0.0.1'), status=3)
        self.assertIn('has a certificate that is not accepted', said)
        self.assertEqual((self.recorded(), self.mails()), (0, ['']))

    def test_a_token_logs_in(self):
        environment = dict(self.environment(), MAILROOM_BOUNCE_TOKEN_FILE=os.environ['MAILROOM_TEST_MAILBOX_TOKEN_FILE'])
        del environment['MAILROOM_BOUNCE_PASSWORD_FILE']
        for number, url in enumerate((('--imap', self.imap), ('--pop3', self.pop3))):
            self.put_report(f'token{number}@mail.example')
            done = subprocess.run((MAILROOM, 'bounce', *url, '--once'), env=environment, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE)
            self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(self.recorded(), 2)

    def test_a_mail_that_is_too_large_is_read_to_its_bound(self):
        for number, url in enumerate((('--imap', self.imap), ('--pop3', self.pop3))):
            self.put_report(f'large{number}@mail.example', more=('x' * 70 + '\n') * 200_000)
            self.read(*url)
            self.assertEqual(self.recorded(), number + 1)
        self.assertEqual(len(DATABASE.psql('SELECT address FROM mailroom_suppressions').split()), 2)

    def test_pop3_removes_what_is_on_record(self):
        for number in range(3):
            self.put_report(f'pop{number}@mail.example')
        self.put('From: ada@mail.example\nTo: no-reply@app.example\nSubject: Dots\n\n.\n..\n')
        self.read('--pop3', self.pop3)
        self.assertEqual((self.recorded(), len(self.mails())), (3, 1))

    def test_pop3_removes_nothing_when_it_is_cut_before_its_end(self):
        self.put_report('pop-cut@mail.example')
        removing = []

        def cut(line):
            if line.startswith('DELE'):
                removing.append(self.recorded())
            return not line.startswith('QUIT')

        middle = Middle(self.pop3, self.certificate, cut)
        self.read('--pop3', middle.url, status=4)
        middle.close()
        self.assertEqual((removing, self.recorded(), len(self.mails())), ([1], 1, 1))
        self.read('--pop3', self.pop3)
        self.assertEqual((self.recorded(), len(self.mails())), (1, 0))

    def test_a_service_reads_what_comes_and_outlives_its_connection(self):
        middle = Middle(self.imap, self.certificate)
        reader = subprocess.Popen((MAILROOM, 'bounce', '--imap', middle.url), env=self.environment(),
                                  stderr=subprocess.DEVNULL)
        try:
            self.put_report('early@mail.example')
            self.eventually(lambda: self.recorded() == 1)
            middle.on_command = lambda line: False
            self.put_report('late@mail.example')
            time.sleep(0.1)
            middle.on_command = lambda line: True
            self.eventually(lambda: self.recorded() == 2 and self.mails() == ['S', 'S'])
        finally:
            reader.terminate()
        self.assertEqual(reader.wait(PATIENCE), 0)
        middle.close()

    def test_what_the_protocol_does_not_have_is_refused(self):
        self.assertIn('--delete needs --imap', self.read('--pop3', self.pop3, '--delete', status=2))
        self.assertIn('--done and --delete', self.read('--imap', self.imap, '--done', 'x', '--delete', status=2))
        self.assertIn('must name one host, and the user', self.read('--imap', 'imaps://localhost', status=3))


if __name__ == '__main__':
    if 'MAILROOM_TEST_IMAP' not in os.environ:
        program = f'{SOURCE}/scripts/with-dovecot'
        status = os.spawnv(os.P_WAIT, program, [program, '--', sys.executable, *sys.argv])
        sys.exit(0 if status == 77 else status)
    # A connection of a middle ends with its thread.
    unittest.main(argv=sys.argv[:1], warnings='ignore')
