#!/usr/bin/python3
"""signed_test.py SOURCE MAILROOM: mails with a topic through a real Postfix whose OpenDKIM signs them, and asks npm's mailauth which header fields the
signature covers, and so `mailroom doctor --mail`. Needs a PostgreSQL in PGHOST and PGUSER, and what scripts/install-packages --tests installs.
"""

import glob
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, '..', 'support'))
from free_port import free_port  # noqa: E402
from own_database import OwnDatabase, run  # noqa: E402

SOURCE, MAILROOM = sys.argv[1], sys.argv[2]
PACKAGES = '/usr/local/share/mailroom-tests'
OPENDKIM = shutil.which('opendkim', path='/usr/sbin') or f'{PACKAGES}/opendkim/usr/sbin/opendkim'
MODULES = f'{PACKAGES}/mail/node_modules'
BOTH = {'list-unsubscribe', 'list-unsubscribe-post'}


class SignedTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.database = OwnDatabase('signed_test')
        cls.database.create(MAILROOM, MAILROOM_SECRET_KEY='ab' * 32, MAILROOM_SEND_FROM='no-reply@app.example',
                            MAILROOM_SEND_UNSUBSCRIBE_LINK='https://app.example/mail/u/{token}',
                            MAILROOM_SEND_UNSUBSCRIBE_MAILTO='off+{id}@app.example')
        cls.addClassCleanup(cls.database.drop)
        cls.database.psql("SELECT mailroom_create_topic('news', 'News')")

    def setUp(self):
        # Postfix delivers as another user, who cannot enter every TMPDIR.
        directory = tempfile.TemporaryDirectory(dir='/tmp')
        self.addCleanup(directory.cleanup)
        self.directory = directory.name
        os.chmod(self.directory, 0o755)
        self.key = os.path.join(self.directory, 'key')
        subprocess.run(['openssl', 'genrsa', '-out', self.key, '2048'], check=True, capture_output=True)
        public = run('openssl', 'rsa', '-pubout', '-in', self.key, stderr=subprocess.DEVNULL)
        self.record = 'v=DKIM1; k=rsa; p=' + ''.join(public.splitlines()[1:-1])

    def start_signer(self, *settings):
        """An OpenDKIM with the settings that Debian gives it, and these; returns its port."""
        port = free_port()
        path = os.path.join(self.directory, 'opendkim.conf')
        with open(path, 'w', encoding='ascii') as file:
            file.write('\n'.join(('Canonicalization relaxed/simple', 'OversignHeaders From', 'Mode s', 'Domain app.example', 'Selector s1',
                                  f'KeyFile {self.key}', 'Background no', 'AutoRestart no', 'RequireSafeKeys no', f'Socket inet:{port}@127.0.0.1', *settings, '')))
        libraries = ':'.join(glob.glob(f'{PACKAGES}/opendkim/usr/lib/*'))
        signer = subprocess.Popen([OPENDKIM, '-f', '-x', path], env={**os.environ, 'LD_LIBRARY_PATH': libraries})
        self.addCleanup(signer.wait)
        self.addCleanup(signer.terminate)
        for _ in range(200):
            with socket.socket() as client:
                if client.connect_ex(('127.0.0.1', port)) == 0:
                    return port
            self.assertIsNone(signer.poll(), 'opendkim has ended')
            time.sleep(0.05)
        self.fail('opendkim does not listen')

    def verified(self, *settings):
        """What mailauth says of a mail with a topic that was signed so."""
        maildir = os.path.join(self.directory, 'mails')
        self.database.psql("SELECT mailroom_send(ARRAY['ada@mail.example'], subject => 'x', text => 'y', topic => 'news')")
        run(f'{SOURCE}/scripts/with-postfix', '--maildir', maildir, '--milter', f'127.0.0.1:{self.start_signer(*settings)}', '--',
            'sh', '-c', '"$0" send --once --log-level warn --relay "$MAILROOM_TEST_RELAY"', MAILROOM)
        received, = glob.glob(maildir + '/new/*')
        with open(received, 'rb') as file:
            # Maildirs have the line ends of this system.
            mail = re.sub(rb'\r?\n', b'\r\n', file.read())
        said = subprocess.run(['node', os.path.join(HERE, 'verify_dkim.mjs'), MODULES, self.record], input=mail, check=True, capture_output=True)
        said = json.loads(said.stdout)
        self.assertEqual(said['result'], 'pass', said)
        self.doctor = subprocess.run([MAILROOM, 'doctor', '--mail', received], text=True, capture_output=True, check=False).stdout
        return set(said['signed'])

    def test_what_opendkim_signs_unless_told(self):
        self.assertEqual(self.verified() & BOTH, {'list-unsubscribe'})
        self.assertIn('that of app.example leaves out List-Unsubscribe-Post', ' '.join(self.doctor.split()))

    def test_the_line_of_the_page_lets_opendkim_sign_both(self):
        with open(f'{SOURCE}/docs/unsubscribe.md', encoding='utf-8') as file:
            line = re.search(r'`(SignHeaders [^`]+)`', file.read())[1]
        self.assertLessEqual(BOTH, self.verified(line))
        self.assertIn('that of app.example covers List-Unsubscribe and List-Unsubscribe-Post', ' '.join(self.doctor.split()))


if __name__ == '__main__':
    for reason in (['only root can start a Postfix'] if os.geteuid() != 0 else []) + [
            f'{path} is missing: scripts/install-packages --tests' for path in (OPENDKIM, f'{MODULES}/mailauth') if not os.path.exists(path)]:
        sys.exit(print(f'NOT RUN: {reason}'))
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
