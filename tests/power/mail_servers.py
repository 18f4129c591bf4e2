"""Other servers that say 250, from the packages of this Debian or of npm, in a layer over its root that is gone afterwards. Their queues are on the disk whose
power is cut; all else of them survives."""

import contextlib
import glob
import os
import random
import shutil
import socket
import subprocess

from machine import eventually, run

EXIM = '''primary_hostname = relay.mailroom.test
spool_directory = /var/spool/exim4
local_interfaces = 127.0.0.1
daemon_smtp_ports = {port}
acl_smtp_rcpt = everyone
log_file_path = /tmp/%s
begin acl
everyone:
  accept
begin routers
next:
  driver = manualroute
  route_list = * 127.0.0.1
  self = send
  transport = next
begin transports
next:
  driver = smtp
  port = {relay}
  hosts_avoid_tls = *
begin retry
* * F,1h,2s
'''
OPENSMTPD = '''listen on 127.0.0.1 port {port}
action "next" relay host smtp://127.0.0.1:{relay}
match from any for any action "next"
'''
CHASQUID = '''hostname: "relay.mailroom.test"
smtp_address: "127.0.0.1:{port}"
submission_address: "127.0.0.1:0"
submission_over_tls_address: "127.0.0.1:0"
mail_delivery_agent_bin: "/usr/local/bin/hand-on"
mail_delivery_agent_args: "%from%"
data_dir: "/var/lib/chasquid"
mail_log_path: "<stdout>"
'''
SENDMAIL = """include(`/usr/share/sendmail/cf/m4/cf.m4')
OSTYPE(`debian')
define(`confDOMAIN_NAME', `relay.mailroom.test')
define(`SMART_HOST', `relay:[127.0.0.1]')
define(`RELAY_MAILER_ARGS', `TCP $h {relay}')
define(`confTRUSTED_USER', `smmta')
define(`confTO_ICONNECT', `5s')
define(`confMIN_QUEUE_AGE', `0s')
define(`confTO_IDENT', `0s')
define(`confREFUSE_LA', `1000')
define(`confQUEUE_LA', `1000')
FEATURE(`no_default_msa')
FEATURE(`promiscuous_relay')
FEATURE(`accept_unresolvable_domains')
FEATURE(`accept_unqualified_senders')
DAEMON_OPTIONS(`Addr=127.0.0.1, Port={port}')
MAILER(`smtp')
"""
HARAKA = """listen=127.0.0.1:{port}
relay={relay}
"""
# Takes mails for everybody, and passes them on to the relay.
HARAKA_PLUGIN = """exports.hook_connect = function (next, connection) { connection.relaying = true; next(); };
exports.hook_rcpt = function (next) { next(OK); };
exports.hook_get_mx = function (next) {
  next(OK, { priority: 0, exchange: '127.0.0.1', port: Number(this.config.get('smtp.ini').main.relay) });
};
"""
# The delivery agent of chasquid, which knows no relay.
HAND_ON = '''#!/usr/bin/python3
import smtplib, sys
try:
    with smtplib.SMTP('127.0.0.1', {relay}, timeout=20) as relay:
        relay.sendmail('a@mail.example', 'b@mail.example', sys.stdin.buffer.read())
except OSError:
    sys.exit(75)
'''
# package: (packages, queue, configuration, its text, before the daemon runs, the daemon, what has it try again)
SERVERS = {
    'exim': (['exim4-daemon-light'], '/var/spool/exim4', '/etc/exim4/exim4.conf', EXIM, 'chmod 644 /etc/exim4/exim4.conf', 'exim4 -bdf -q5s', ''),
    'opensmtpd': (['opensmtpd'], '/var/spool/smtpd', '/etc/smtpd.conf', OPENSMTPD, 'true', 'smtpd -d', 'smtpctl schedule all'),
    'chasquid': (['chasquid'], '/var/lib/chasquid', '/etc/chasquid/chasquid.conf', CHASQUID, 'true', 'setpriv --reuid=chasquid --regid=chasquid --clear-groups chasquid', ''),
    'sendmail': (['sendmail-bin', 'sendmail-cf', 'm4'], '/var/spool/mqueue', '/etc/mail/mailroom.mc', SENDMAIL,
                 'm4 /etc/mail/mailroom.mc >/etc/mail/sendmail.cf', '/usr/libexec/sendmail/sendmail -bD -q2s', ''),
    'haraka': (['npm:Haraka'], '/opt/mail/queue', '/opt/mail/config/smtp.ini', HARAKA, 'true', '/opt/haraka/bin/haraka -c /opt/mail', ''),
}


def free_port():
    """Below those that the kernel gives to clients: it has to be free after each cut."""
    while True:
        port = random.randrange(10000, 30000)
        with contextlib.suppress(OSError), socket.create_server(('127.0.0.1', port)):
            return port


class Packaged:
    def __init__(self, machine, name, server):
        """`server` as in SERVERS."""
        self.machine, self.name, self.port = machine, name, free_port()
        self.packages, self.queue, self.path, self.text, self.prepare, self.daemon, self.again = server
        self.root = f'{machine.directory}/layer/root'
        self.log = open(f'{machine.directory}/server.log', 'ab+')

    def make(self):
        layer = f'{self.machine.directory}/layer'
        for name in ('root', 'up', 'work'):
            os.makedirs(f'{layer}/{name}')
        run('mount', '-t', 'overlay', '-o', f'lowerdir=/,upperdir={layer}/up,workdir={layer}/work', 'overlay', self.root)
        self._write('/usr/sbin/policy-rc.d', '#!/bin/sh\nexit 101\n', 0o755)
        self._write('/etc/hosts', f'127.0.0.1 relay.mailroom.test localhost {socket.gethostname()}\n')
        names = ' '.join(self.packages)
        if names.startswith('npm:'):
            done = self._inside(f'npm install --silent --global --prefix /opt/haraka {names[4:]} && npm ls --global --prefix /opt/haraka')
        else:
            done = self._inside(f'apt-get install -y -qq --no-install-recommends -o Dpkg::Options::=--force-unsafe-io -o Acquire::Retries=3 {names} >/tmp/log 2>&1 || '
                                f'{{ cat /tmp/log; exit 1; }}; dpkg-query -W {names}')
        if done.returncode != 0:
            raise AssertionError(f'{names} cannot be installed: {done.stdout[-500:]}')
        print(done.stdout.strip().replace('\n', ', '))
        self._write('/etc/nsswitch.conf', 'hosts: files\npasswd: files\ngroup: files\n')  # nobody is asked for names
        if self.name == 'chasquid':
            self._make_chasquid()
        if self.name == 'haraka':
            self._inside('/opt/haraka/bin/haraka -i /opt/mail')
            for place, text in (('config/me', 'relay.mailroom.test\n'), ('config/plugins', 'take\n'), ('config/outbound.ini', 'temp_fail_intervals=1s*1000\n'), ('plugins/take.js', HARAKA_PLUGIN)):
                os.makedirs(os.path.dirname(f'{self.root}/opt/mail/{place}'), exist_ok=True)
                self._write(f'/opt/mail/{place}', text)
        os.makedirs(self.root + self.queue, 0o711, exist_ok=True)  # of OpenSMTPD its first start makes it
        run('cp', '-a', self.root + self.queue, f'{self.machine.root}/queue')

    def _make_chasquid(self):
        folder = f'{self.root}/etc/chasquid/certs/relay.mailroom.test'
        os.makedirs(folder)
        run('openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2', '-subj', '/CN=relay.mailroom.test',
            '-keyout', f'{folder}/privkey.pem', '-out', f'{folder}/fullchain.pem')
        os.makedirs(f'{self.root}/etc/chasquid/domains/mail.example')
        self._write('/etc/chasquid/domains/mail.example/aliases', '*: all@mail.example\n')
        self._write(self.path, self.text.format(port=self.port, relay=9))
        done = self._inside('chasquid-util user-add all@mail.example --password=secret; chmod -R a+rX /etc/chasquid; chown -R chasquid /var/lib/chasquid')
        if done.returncode != 0:
            raise AssertionError(done.stdout)

    def _inside(self, command):
        # In a mount namespace of its own, so that nothing of it stays.
        script = f'mount -t proc proc {self.root}/proc && mount --rbind /dev {self.root}/dev && exec chroot {self.root} sh -c {command!r}'
        return subprocess.run(['unshare', '--mount', 'sh', '-c', script], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              env={**os.environ, 'DEBIAN_FRONTEND': 'noninteractive', 'LC_ALL': 'C', 'HOME': '/root'}, timeout=280, check=False)

    def _write(self, path, text, mode=0o644):
        with open(self.root + path, 'w', encoding='ascii') as file:
            file.write(text)
        os.chmod(self.root + path, mode)

    def start(self, relay):
        self._write(self.path, self.text.format(port=self.port, relay=relay))
        if self.name == 'chasquid':
            self._write('/usr/local/bin/hand-on', HAND_ON.format(relay=relay), 0o755)
        root = self.root
        script = (f'mount --bind {self.machine.root}/queue {root}{self.queue}; mount -t proc proc {root}/proc; mount --rbind /dev {root}/dev; '
                  f'mount -t tmpfs tmpfs {root}/run; mount -t tmpfs -o mode=1777 tmpfs {root}/tmp; '
                  f'exec chroot {root} sh -c {f"{self.prepare}; exec {self.daemon}"!r}')
        self.machine.start('unshare', '--mount', 'sh', '-c', script, stdout=self.log, stderr=self.log, cwd='/')

    def try_again(self):
        if self.again:
            first = self.machine.start('sh', '-c', f'sleep 3; exec chroot /proc/$(pgrep -o smtpd)/root {self.again}', stdout=self.log, stderr=self.log)
            eventually(lambda: first.poll() is not None, 20)

    def said(self):
        self.log.seek(0)
        return self.log.read()[-2000:].decode(errors='replace')

    def waiting(self):
        texts = []
        for path in glob.glob(f'{self.machine.root}/queue/**', recursive=True):
            # A directory, or passed on meanwhile.
            with contextlib.suppress(IsADirectoryError, FileNotFoundError), open(path, 'rb') as file:
                texts.append(file.read())
        return texts

    @staticmethod
    def is_there():
        return shutil.which('apt-get') is not None
