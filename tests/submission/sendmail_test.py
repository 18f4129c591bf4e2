#!/usr/bin/python3
"""sendmail_test.py MAILROOM: `mailroom sendmail` as programs call it, with the service there and away: what is stored, what waits in the spool, and
the exit codes. A spool that is taken by a service that is killed again and again: each mail is stored once. Needs the PostgreSQL of
with-postgres for itself."""

import os
import pwd
import stat
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from submission_service import MAILROOM, Submission, eventually  # noqa: E402
from own_database import OwnDatabase  # noqa: E402

DATABASE = OwnDatabase('sendmail_test')
DIRECTORY = tempfile.TemporaryDirectory()
SOCKET = f'{DIRECTORY.name}/socket'
SPOOL = f'{DIRECTORY.name}/spool'
SETTINGS = {'MAILROOM_SUBMISSION_LOCAL_TO': 'ops@shop.example', 'MAILROOM_SUBMISSION_LOCAL_FROM': 'web1@shop.example',
            'MAILROOM_SUBMISSION_ALIASES': f'{DIRECTORY.name}/aliases', 'MAILROOM_SUBMISSION_SPOOL': SPOOL}


def setUpModule():
    DATABASE.create(MAILROOM)
    DATABASE.psql('CREATE ROLE shop LOGIN; CREATE ROLE stranger LOGIN; GRANT EXECUTE ON FUNCTION mailroom_submit, mailroom_message_status TO shop')
    os.mkdir(SPOOL)
    os.chmod(SPOOL, 0o3777)
    os.chmod(DIRECTORY.name, 0o755)
    os.symlink(os.path.abspath(MAILROOM), f'{DIRECTORY.name}/sendmail')
    os.symlink(os.path.abspath(MAILROOM), f'{DIRECTORY.name}/mailq')
    with open(f'{DIRECTORY.name}/aliases', 'w', encoding='ascii') as file:
        file.write('# who reads what\nroot: ada@mail.example,\n  webmaster\nWebmaster: bob@mail.example\nlog: |/bin/cat\n')


def tearDownModule():
    DATABASE.drop()
    DATABASE.psql('DROP ROLE shop, stranger', 'postgres')
    DIRECTORY.cleanup()


def sendmail(mail, *arguments, door=f'{SOCKET}=shop', name='sendmail', user=None, **settings):
    """The exit code and what it said."""
    environment = dict(os.environ, MAILROOM_SUBMISSION_LISTEN=door, **{**SETTINGS, **settings})
    done = subprocess.run([f'{DIRECTORY.name}/{name}', *arguments], input=mail, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          user=user if os.geteuid() == 0 else None, check=False)
    return done.returncode, done.stdout.decode()


def stored():
    """The messages since the last call: envelope and text."""
    rows = DATABASE.psql("WITH gone AS (DELETE FROM mailroom_messages RETURNING id, return_path, recipients, raw) SELECT return_path, "
                         "array_to_string(recipients, ','), encode(raw, 'hex') FROM gone ORDER BY id")
    return [(sender, recipients, bytes.fromhex(raw)) for sender, recipients, raw in (row.split('\t') for row in rows.splitlines())]


def subjects_of(mails):
    """The numbers in the subjects, in the order of the messages, by the local parts of recipients."""
    found = {}
    for _, recipients, raw in mails:
        found.setdefault(recipients.partition('@')[0], []).append(int(raw.split(b'Subject: ')[1].split(b'\r')[0]))
    return found


def submission_of_unit(door):
    """With the umask of the unit."""
    before = os.umask(0o027)
    service = Submission([door], **SETTINGS)
    os.umask(before)
    return service


def spooled():
    return sorted(os.listdir(SPOOL))


class WithService(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.service = Submission([f'{SOCKET}=shop'], **SETTINGS)

    @classmethod
    def tearDownClass(cls):
        assert cls.service.stop() == 0

    def test_a_mail_of_a_program_is_stored_as_it_is_written(self):
        self.assertEqual(sendmail(b'From: shop@shop.example\nTo: Ada <ada@mail.example>, list: bob@mail.example;\nBcc: eve@mail.example\nSubject: s\n\n'
                                  b'one\r\n.two\r\r\n..\n', '-t', '-i', '-f', 'shop@shop.example', 'carl@mail.example'), (0, ''))
        (sender, recipients, raw), = stored()
        self.assertEqual((sender, recipients), ('shop@shop.example', 'carl@mail.example,ada@mail.example,bob@mail.example,eve@mail.example'))
        self.assertIn(b'To: Ada <ada@mail.example>, list: bob@mail.example;\r\n', raw)
        self.assertNotIn(b'Bcc', raw)
        self.assertTrue(raw.endswith(b'\r\n\r\none\r\n.two\r\n..\r\n'))

    def test_a_mail_of_cron_goes_to_who_reads_the_mails_of_root(self):
        self.assertEqual(sendmail(b'From ada  Sat Nov 28\nFrom: root (Cron Daemon)\nTo: root\nSubject: Cron <root@web1> true\n\nx\n.\nnot this\n',
                                  '-FCronDaemon', '-odi', '-oem', '-oi', '-t')[0], 0)
        (sender, recipients, raw), = stored()
        self.assertEqual((sender, recipients), ('web1@shop.example', 'ada@mail.example,bob@mail.example'))
        self.assertIn(b'x\r\n.\r\nnot this\r\n', raw)
        self.assertEqual(sendmail(b'x\n.\nnot this\n', 'nobody')[0], 0)
        (sender, recipients, raw), = stored()
        self.assertEqual((sender, recipients), ('web1@shop.example', 'ops@shop.example'))
        self.assertTrue(raw.endswith(b'\r\n\r\nx\r\n'))
        for field in (b'From: ', b'Date: ', b'Message-ID: '):
            self.assertIn(b'\r\n' + field, b'\r\n' + raw)

    def test_the_exit_code_says_why_a_mail_is_refused(self):
        for arguments, code, words in ((['--', 'no one@x'], 64, 'address'), (['-t'], 64, 'nobody gets this mail'), (['-Q', 'ada@mail.example'], 64, 'no option'),
                                       (['-bd'], 64, 'mailroom submission'), (['-f'], 64, 'needs a value'),
                                       (['ada@-x.example'], 67, 'ada@-x.example'), (['log'], 69, 'is a program'),
                                       (['-f', 'a@-x.example', 'ada@mail.example'], 69, '')):
            with self.subTest(arguments):
                came, said = sendmail(b'Subject: s\n\nx\n', *arguments)
                self.assertEqual(came, code, said)
                self.assertIn(words, said)
        self.assertEqual(sendmail(b'x', 'ada@mail.example', door='127.0.0.1:25=shop', MAILROOM_SUBMISSION_SPOOL='')[0], 78)
        self.assertEqual((stored(), spooled()), ([], []))

    def test_the_null_sender_and_smtp(self):
        self.assertEqual(sendmail(b'From: a@shop.example\n\nx\n', '-f', '<>', 'ada@mail.example')[0], 0)
        self.assertEqual([(sender, recipients) for sender, recipients, _ in stored()], [('', 'ada@mail.example')])
        code, said = sendmail(b'EHLO x\r\nMAIL FROM:<a@shop.example>\r\nRCPT TO:<ada@mail.example>\r\nDATA\r\nFrom: a@shop.example\r\n\r\nx\r\n.\r\nQUIT\r\n', '-bs')
        self.assertEqual(code, 0)
        self.assertIn('queued as message:', said)
        self.assertEqual(len(stored()), 1)

    def test_mailq_and_newaliases(self):
        self.assertEqual(sendmail(b'', name='mailq'), (0, 'Mail queue is empty\n'))
        self.assertEqual(sendmail(b'', '-bi'), (0, ''))
        self.assertEqual(subprocess.run([MAILROOM, '--config', '/dev/null', 'sendmail', '-bi'], check=False).returncode, 0)


class WithoutService(unittest.TestCase):
    def test_each_user_mails_as_the_role_of_his_name(self):
        other = 'nobody' if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name
        DATABASE.psql(f'CREATE ROLE {other} LOGIN; GRANT EXECUTE ON FUNCTION mailroom_submit, mailroom_message_status TO {other}')
        self.assertEqual(sendmail(b'Subject: 1\n\nx\n', 'ada@mail.example', door=f'{SOCKET}=*', user=other), (0, ''))
        service = submission_of_unit(f'{SOCKET}=*')
        self.assertTrue(eventually(lambda: not spooled()), spooled())
        self.assertEqual(sendmail(b'Subject: 2\n\nx\n', 'ada@mail.example', door=f'{SOCKET}=*', user=other, MAILROOM_SUBMISSION_SPOOL=''), (0, ''))
        self.assertEqual(DATABASE.psql('SELECT DISTINCT enqueued_by FROM mailroom_messages').split(), [other])
        self.assertEqual(service.stop(), 0)
        self.assertEqual(len(stored()), 2)
        DATABASE.psql(f'DROP OWNED BY {other}; DROP ROLE {other}')

    def test_every_user_reaches_the_socket_of_a_role(self):
        service = submission_of_unit(f'{SOCKET}=shop')
        self.assertEqual(sendmail(b'x', 'ada@mail.example', user='nobody', MAILROOM_SUBMISSION_SPOOL=''), (0, ''))
        self.assertEqual(service.stop(), 0)
        self.assertEqual(len(stored()), 1)

    def test_a_user_whose_mails_the_database_does_not_take_is_told_at_once_what_mends_it(self):
        DATABASE.psql('CREATE ROLE sleeper; GRANT EXECUTE ON FUNCTION mailroom_submit TO sleeper')
        with open(f'{os.environ["MAILROOM_TEST_PGDATA"]}/pg_hba.conf', 'r+', encoding='utf-8') as hba:
            before = hba.read()
            hba.seek(0)
            hba.write('local all outcast reject\n' + before)
            hba.flush()
            DATABASE.psql('CREATE ROLE outcast LOGIN; GRANT EXECUTE ON FUNCTION mailroom_submit TO outcast; SELECT pg_reload_conf()')
            for role, code, words in (('stranger', 77, 'GRANT mailroom_submitter TO "stranger"'), ('sleeper', 77, 'ALTER ROLE "sleeper" LOGIN'),
                                      ('ghost', 77, 'CREATE ROLE "ghost" LOGIN IN ROLE mailroom_submitter'), ('outcast', 75, 'pg_hba.conf')):
                with self.subTest(role):
                    service = Submission([f'{SOCKET}={role}'], **SETTINGS)
                    began = time.monotonic()
                    came, said = sendmail(b'x', 'ada@mail.example', MAILROOM_SUBMISSION_SPOOL='' if code == 75 else SPOOL)
                    self.assertLess(time.monotonic() - began, 10)  # submission.patience is 20 s
                    self.assertEqual(service.stop(), 0)
                    self.assertEqual((came, spooled()), (code, []))
                    self.assertIn(words, said)
            hba.seek(0)
            hba.truncate()
            hba.write(before)
        DATABASE.psql('SELECT pg_reload_conf(); DROP OWNED BY sleeper, outcast; DROP ROLE sleeper, outcast')

    def test_without_a_spool_a_program_is_told_to_try_again(self):
        code, said = sendmail(b'x', 'ada@mail.example', MAILROOM_SUBMISSION_SPOOL='')
        self.assertEqual(code, 75)
        self.assertIn('submission.spool', said)

    def test_a_spool_that_cannot_be_written_is_no_success(self):
        self.assertEqual(sendmail(b'x', 'ada@mail.example', MAILROOM_SUBMISSION_SPOOL=f'{DIRECTORY.name}/none')[0], 75)

    def test_a_mail_that_waits_keeps_its_place_and_no_other_mail(self):
        if os.geteuid() != 0:
            print('NOT RUN: root alone mails as others')
            return
        for other in ('nobody', 'daemon'):
            DATABASE.psql(f'CREATE ROLE {other} LOGIN; GRANT EXECUTE ON FUNCTION mailroom_submit, mailroom_message_status TO {other}')
        for i, user in enumerate(('nobody', 'daemon', 'nobody', 'nobody', 'daemon', 'daemon')):
            self.assertEqual(sendmail(f'Subject: {i}\n\nx\n'.encode(), f'{user}@mail.example', user=user), (0, ''))
        DATABASE.psql("SELECT mailroom_limit('nobody', 1, '1 hour')")
        service = Submission([f'{SOCKET}=*'], **SETTINGS)
        self.assertTrue(eventually(lambda: len(spooled()) == 2), spooled())
        self.assertEqual(service.stop(), 0)
        self.assertTrue(service.said('a mail waits in the spool'))
        self.assertEqual(subjects_of(stored()), {'nobody': [0], 'daemon': [1, 4, 5]})
        DATABASE.psql("SELECT mailroom_limit('nobody', NULL, NULL)")
        service = Submission([f'{SOCKET}=*'], **SETTINGS)
        self.assertTrue(eventually(lambda: not spooled()), spooled())
        self.assertEqual(service.stop(), 0)
        self.assertEqual(subjects_of(stored()), {'nobody': [2, 3]})
        DATABASE.psql('DROP OWNED BY nobody, daemon; DROP ROLE nobody, daemon')

    def test_mails_wait_for_a_service_that_is_not_set_up(self):
        self.assertEqual(sendmail(b'x', 'desk', door=''), (0, ''))
        with open(SETTINGS['MAILROOM_SUBMISSION_ALIASES'], 'a', encoding='ascii') as file:
            file.write('desk: eve@mail.example\n')
        self.assertEqual(sendmail(b'x', 'ada@mail.example', door='', MAILROOM_SUBMISSION_SPOOL='')[0], 78)
        service = Submission([f'{SOCKET}=shop'], **SETTINGS)
        self.assertTrue(eventually(lambda: not spooled()), spooled())
        self.assertEqual(service.stop(), 0)
        self.assertEqual([recipients for _, recipients, _ in stored()], ['eve@mail.example'])

    def test_what_waits_is_taken_when_the_service_comes(self):
        self.assertEqual(sendmail(b'Subject: s\n\nx\n', 'ada@mail.example'), (0, ''))
        name, = spooled()
        self.assertEqual(stat.S_IMODE(os.stat(f'{SPOOL}/{name}').st_mode), 0o640)
        self.assertEqual(sendmail(b'', name='mailq'), (0, f'{SPOOL}/{name}\n'))
        # What others left there: begun, no mail, a link to a file of somebody else.
        for other, text in (('.begun', 'mailroom 1\nS a@shop.example\n'), ('1', 'mailroom 1\nR ada@mail.example\n'), ('2', 'x'),
                            ('3', 'mailroom 1\nS a@shop.example\nR a..@-x.example\n\nx\r\n')):
            with open(f'{SPOOL}/{other}', 'w', encoding='ascii') as file:
                file.write(text)
        os.symlink('/etc/hostname', f'{SPOOL}/4')
        os.link(f'{SPOOL}/2', f'{SPOOL}/5')
        service = Submission([f'{SOCKET}=shop'], **SETTINGS)
        self.assertTrue(eventually(lambda: spooled() == ['.begun', '4', 'refused-1', 'refused-2', 'refused-3', 'refused-5']), spooled())
        self.assertEqual(service.stop(), 0)
        self.assertTrue(service.said('a mail of the spool is refused'))
        self.assertEqual([(sender, recipients) for sender, recipients, _ in stored()], [('web1@shop.example', 'ada@mail.example')])
        for name in spooled():
            os.unlink(f'{SPOOL}/{name}')

    def test_a_service_that_is_killed_stores_each_mail_once(self):
        mails = 150
        for i in range(mails):
            self.assertEqual(sendmail(f'Subject: {i}\n\nx\n'.encode(), 'ada@mail.example')[0], 0)
        rounds = 0
        while True:
            service = Submission([f'{SOCKET}=shop'], **SETTINGS)
            before = len(spooled())
            # Killed while it takes them, and in the end not at all.
            self.assertTrue(eventually(lambda: len(spooled()) < max(before - 20, 1)))
            if not spooled():
                break
            rounds += 1
            service.kill()
        self.assertEqual(service.stop(), 0)
        self.assertGreaterEqual(rounds, 3)
        self.assertEqual(sorted(subjects_of(stored())['ada']), list(range(mails)))


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
