#!/usr/bin/python3
"""package_test.py BUILD: makes the Debian packages of a build, and checks them with lintian and against what an operator
expects of them."""

import glob
import gzip
import os
import re
import subprocess
import sys
import tempfile
import unittest

BUILD = sys.argv[1]

# path: mode, or None for any
EXPECTED = {
    './etc/mailroom/': '0755',
    './etc/mailroom/mailroom.yaml': '0644',
    './etc/mailroom/credentials/': '0750',
    './usr/bin/mailroom': '0755',
    './usr/lib/systemd/system/mailroom-bounce.service': '0644',
    './usr/lib/systemd/system/mailroom-desk.service': '0644',
    './usr/lib/systemd/system/mailroom-submission.service': '0644',
    './usr/lib/systemd/system/mailroom-submission.socket': '0644',
    './usr/lib/systemd/system/mailroom-collect@.service': '0644',
    './usr/lib/systemd/system/mailroom-handover@.service': '0644',
    './usr/lib/systemd/system/mailroom-send@.service': '0644',
    './usr/lib/systemd/system/mailroom-sender@.socket': '0644',
    './usr/lib/sysusers.d/mailroom.conf': '0644',
    './usr/share/bash-completion/completions/mailroom': '0644',
    './usr/share/doc/mailroom/changelog.gz': '0644',
    './usr/share/doc/mailroom/changelog.Debian.gz': '0644',
    './usr/share/doc/mailroom/copyright': '0644',
    './usr/share/doc/mailroom/docs/exec.md': '0644',
    './usr/share/doc/mailroom/docs/nats.md': '0644',
    './usr/share/doc/mailroom/docs/rabbitmq.md': '0644',
    './usr/share/doc/mailroom/docs/scaling.md': '0644',
    './usr/share/doc/mailroom/docs/service.md': '0644',
    './usr/share/doc/mailroom/docs/webhooks.md': '0644',
    './usr/share/doc/mailroom/examples/prometheus/mailroom-alerts.yml': '0644',
    './usr/share/doc/mailroom/examples/senders/sender.mjs': '0755',
    './usr/share/doc/mailroom/examples/senders/sender.py': '0755',
    './usr/share/doc/mailroom/examples/senders/sender.sh': '0755',
    './usr/share/doc/mailroom/examples/systemd/mail-sender': '0755',
    './usr/share/doc/mailroom/examples/systemd/mailroom-sender@.service': '0644',
    './usr/share/doc/mailroom/mailroom.yaml.example': '0644',
    './usr/share/fish/vendor_completions.d/mailroom.fish': '0644',
    './usr/share/man/man1/mailroom-collect.1.gz': '0644',
    './usr/share/man/man1/mailroom-sendmail.1.gz': '0644',
    './usr/share/man/man1/mailroom.1.gz': '0644',
    './usr/share/zsh/vendor-completions/_mailroom': '0644',
}
LETTERS = 'rwxrwxrwx'


def run(*command, **options):
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, **options).stdout


def octal(letters):
    """`drwxr-xr-x` as 0755."""
    bits = ''.join('0' if letter == '-' else '1' for letter in letters[1:])
    return f'0{int(bits, 2):o}'


class Package(unittest.TestCase):
    CONFIG, NAME = '', ''

    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.directory.cleanup)
        run('cpack', '-G', 'DEB', '--config', f'{BUILD}/{cls.CONFIG}.cmake', '-B', cls.directory.name)
        (cls.package,) = glob.glob(f'{cls.directory.name}/{cls.NAME}_*.deb')
        cls.root = f'{cls.directory.name}/root'
        run('dpkg-deb', '--raw-extract', cls.package, cls.root)
        cls.files = {}
        for line in run('dpkg-deb', '--contents', cls.package).splitlines():
            letters, owner, _, _, _, path = line.split(None, 5)
            cls.files[path.partition(' -> ')[0]] = (octal(letters), owner)

    def read(self, path):
        with open(f'{self.root}/{path}', encoding='utf-8') as file:
            return file.read()

    def field(self, name):
        return run('dpkg-deb', '--field', self.package, name).strip()

    def assert_lintian_has_nothing_to_say(self):
        judged = subprocess.run(['lintian', '--allow-root', '--tag-display-limit', '0', self.package],
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        defects = [line for line in judged.stdout.splitlines() if re.match('[EW]: ', line)]
        self.assertEqual(defects, [])
        self.assertEqual(judged.returncode, 0, judged.stdout)


class SendmailTest(Package):
    CONFIG, NAME = 'CPackSendmail', 'mailroom-sendmail'

    def test_lintian_has_nothing_to_say(self):
        self.assert_lintian_has_nothing_to_say()

    def test_it_is_the_mail_transport_agent_and_no_other_is_beside_it(self):
        for name in ('Provides', 'Conflicts', 'Replaces'):
            self.assertEqual(self.field(name), 'mail-transport-agent')
        # To upgrade mailroom alone must not remove it.
        self.assertEqual(self.field('Depends'), f'mailroom (>= {self.field("Version").partition("-")[0]})')

    def test_its_names_are_links_to_the_program_and_its_page(self):
        program = '/usr/bin/mailroom'
        for name, target in (('usr/sbin/sendmail', program), ('usr/lib/sendmail', '/usr/sbin/sendmail'), ('usr/bin/mailq', program), ('usr/bin/newaliases', program),
                             *((f'usr/share/man/{page}.gz', '/usr/share/man/man1/mailroom-sendmail.1.gz')
                               for page in ('man1/sendmail.1', 'man8/sendmail.8', 'man1/mailq.1', 'man1/newaliases.1'))):
            link = os.readlink(f'{self.root}/{name}')
            self.assertEqual(os.path.normpath(os.path.join('/', os.path.dirname(name), link)), target)


class PackageTest(Package):
    CONFIG, NAME = 'CPackConfig', 'mailroom'

    def test_lintian_has_nothing_to_say(self):
        self.assert_lintian_has_nothing_to_say()

    def test_each_override_has_a_reason_and_is_needed(self):
        lines = self.read('usr/share/lintian/overrides/mailroom').splitlines()
        for before, line in zip([''] + lines, lines):
            self.assertTrue(line.startswith('#') or before.startswith('#'), line)
        used = run('lintian', '--allow-root', '--fail-on', 'none', '--display-info', self.package)
        self.assertNotIn('unused-override', used)

    def test_the_files_are_where_an_operator_looks(self):
        for path, mode in EXPECTED.items():
            self.assertIn(path, self.files)
            self.assertEqual(self.files[path], (mode, 'root/root'), path)
        for path in self.files:
            self.assertFalse(path.startswith('./usr/local'), path)

    def test_only_the_configuration_is_a_conffile(self):
        self.assertEqual(self.read('DEBIAN/conffiles'), '/etc/mailroom/mailroom.yaml\n')
        self.assertEqual([path for path in self.files if path.startswith('./etc/') and not path.endswith('/')],
                         ['./etc/mailroom/mailroom.yaml'])

    def test_the_configuration_is_valid_but_for_the_key(self):
        done = subprocess.run([f'{self.root}/usr/bin/mailroom', 'config', 'show', '--config',
                               f'{self.root}/etc/mailroom/mailroom.yaml'], stdout=subprocess.PIPE, text=True, check=True)
        self.assertIn('credentials/signing.key', done.stdout)

    def test_the_libraries_are_dependencies(self):
        depends = self.field('Depends')
        for library in ('libpq5', 'libpqxx', 'libcurl4', 'libnats', 'librabbitmq', 'libssl3', 'libyaml-cpp', 'libsystemd0',
                        'libmicrohttpd12', 'libevent-2.1', 'libevent-openssl-2.1', 'systemd-sysusers'):
            self.assertIn(library, depends)

    def test_what_is_typed_is_documented_and_completed(self):
        with gzip.open(f'{self.root}/usr/share/man/man1/mailroom-collect.1.gz', 'rt', encoding='utf-8') as file:
            manual = file.read().replace('\\-', '-')
        completions = self.read('usr/share/bash-completion/completions/mailroom')
        for option in ('--to', '--exec', '--ack-on', '--ack-timeout', '--in-flight', '--metrics'):
            self.assertIn(option, manual)
            self.assertIn(option, completions)

    def test_every_sink_is_built_in(self):
        version = run(f'{self.root}/usr/bin/mailroom', '--version')
        for kind in ('exec', 'http (', 'nats (', 'amqp ('):
            self.assertIn(kind, version)

    def test_the_versions_agree(self):
        with gzip.open(f'{self.root}/usr/share/doc/mailroom/changelog.Debian.gz', 'rt', encoding='utf-8') as file:
            self.assertEqual(file.readline().split()[1], f'({self.field("Version")})')

    def test_a_removal_stops_what_the_units_start(self):
        units = {os.path.basename(path).replace('@.', '@*.') for path in self.files if '/systemd/system/m' in path}
        self.assertEqual(len(units), 8)
        for unit in units:
            self.assertIn(f"'{unit}'", self.read('DEBIAN/prerm'))
            self.assertIn(unit, self.read('DEBIAN/postrm'))


if __name__ == '__main__':
    del sys.argv[1:]
    unittest.main()
