"""Delivery reports that come back while the power is cut: into a maildir of the machine, and into a mailbox elsewhere."""

import collections
import hashlib
import os
import shutil
import subprocess

from companies import HERE, Company
from parties import PATIENCE, Client


class Reports(Client):
    """Delivery reports of mails that the relay took, which a mail server of the machine puts into a maildir."""

    SERVER = '''
import os, sys, time
inbox, maildir, flush = sys.argv[1], sys.argv[2], os.fsync if sys.argv[3] != 'report' else int
while True:
    for name in sorted(os.listdir(inbox)):
        if name.startswith('.'): continue
        with open(f'{inbox}/{name}', 'rb') as file: text = file.read()
        with open(f'{maildir}/tmp/{name}', 'wb') as file:
            file.write(text); file.flush(); flush(file.fileno())
        os.rename(f'{maildir}/tmp/{name}', f'{maildir}/new/{name}')
        folder = os.open(f'{maildir}/new', os.O_RDONLY); flush(folder); os.close(folder)
        os.unlink(f'{inbox}/{name}')
        print(name, flush=True)
    time.sleep(0.05)
'''

    def __init__(self, trial):
        super().__init__('report')
        self.trial = trial
        self.inbox, self.maildir = f'{trial.machine.directory}/inbox', f'{trial.machine.root}/reports'
        self.digests = {}
        self.delivered = []

    def work(self):
        server = self.trial.machine.start('/usr/bin/python3', '-c', self.SERVER, self.inbox, self.maildir, str(self.trial.broken), stdout=subprocess.PIPE, text=True)
        try:
            while not self.stopped.is_set():
                self.put_report(server)
        finally:
            server.kill()

    def next_report(self):
        """The name and the text of one, or None if no mail waits for it."""
        name = next((name for name in list(self.trial.relay.taken) if name.startswith(('sql', 'more')) and name not in self.digests and self.trial.relay.taken[name]), None)
        if name is None:
            self.stopped.wait(0.1)
            return None
        identity = self.trial.relay.taken[name][0][0].decode()
        text = (f'From: MAILER-DAEMON@mail.example\r\nTo: {self.kind}@shop.example\r\nSubject: Delivered\r\nMIME-Version: 1.0\r\n'
                f'Content-Type: multipart/report; report-type=delivery-status; boundary="b"\r\n\r\n--b\r\n\r\nDelivered.\r\n'
                f'--b\r\nContent-Type: message/delivery-status\r\n\r\nReporting-MTA: dns; mail.example\r\n\r\nFinal-Recipient: rfc822; ada@mail.example\r\n'
                f'Action: delivered\r\nStatus: 2.0.0\r\n\r\n--b\r\nContent-Type: text/rfc822-headers\r\n\r\nMessage-ID: {identity}\r\n'
                f'Subject: {name}\r\n\r\n--b--\r\n').encode()
        self.digests[name] = hashlib.sha256(text).hexdigest()
        return name, text

    def put_report(self, server):
        report = self.next_report()
        if report is None:
            return
        name, text = report
        with open(f'{self.inbox}/.{name}', 'wb') as file:
            file.write(text)
        os.rename(f'{self.inbox}/.{name}', f'{self.inbox}/{name}')
        line = server.stdout.readline()
        if not line:
            raise OSError('the power is off')
        self.delivered.append(line.strip())
        self.trial.promises.noted(self.kind)


class Bounces(Company):
    """A maildir that mailroom reads."""

    def __init__(self, trial):
        super().__init__(trial)
        self.clients = [Reports(trial)]
        self.commands = [('bounce', '--maildir', self.clients[0].maildir)]

    def prepare(self):
        client = self.clients[0]
        os.mkdir(client.inbox)
        for name in ('', '/tmp', '/new', '/cur'):
            os.mkdir(client.maildir + name)

    def is_done(self):
        return not os.listdir(f'{self.clients[0].maildir}/new')

    def problems(self):
        return report_problems(self.trial, self.clients[0])


class MailboxReports(Reports):
    """The same, into the mailbox of a server that keeps its power."""

    def __init__(self, trial, mailbox):
        super().__init__(trial)
        self.kind, self.mailbox = 'imap', mailbox

    def work(self):
        while not self.stopped.is_set():
            report = self.next_report()
            if report is None:
                continue
            name, text = report
            with open(f'{self.mailbox}/tmp/{name}', 'wb') as file:
                file.write(text)
            shutil.chown(f'{self.mailbox}/tmp/{name}', os.stat(self.mailbox).st_uid, os.stat(self.mailbox).st_gid)
            # Broken: somebody marks it as seen, and nothing is on record.
            place = f'cur/{name}:2,S' if self.trial.broken == 'mailbox' else f'new/{name}'
            os.rename(f'{self.mailbox}/tmp/{name}', f'{self.mailbox}/{place}')
            self.delivered.append(name)
            self.trial.promises.noted(self.kind)


class Mailbox(Company):
    """A mailbox that mailroom reads by IMAP."""

    def __init__(self, trial):
        super().__init__(trial)
        self.dovecot = subprocess.Popen([f'{HERE}/../../scripts/with-dovecot', 'sh', '-c', 'env; exec sleep infinity'], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, text=True)
        settings = {}
        while 'MAILROOM_TEST_MAILBOX_LOG' not in settings or len(settings) < 7:
            line = self.dovecot.stdout.readline()
            if not line:
                raise AssertionError('Dovecot does not start')
            name, _, value = line.strip().partition('=')
            if name.startswith('MAILROOM_TEST_'):
                settings[name] = value
        trial.environment.update(MAILROOM_BOUNCE_PASSWORD_FILE=settings['MAILROOM_TEST_MAILBOX_PASSWORD_FILE'], MAILROOM_BOUNCE_CA_FILE=settings['MAILROOM_TEST_MAILBOX_CA'])
        self.clients = [MailboxReports(trial, settings['MAILROOM_TEST_MAILBOX'])]
        self.commands = [('bounce', '--imap', settings['MAILROOM_TEST_IMAP'])]

    def is_done(self):
        return len(recorded_reports(self.trial)) >= len(self.clients[0].delivered)

    def problems(self):
        return report_problems(self.trial, self.clients[0])

    @staticmethod
    def is_possible():
        return shutil.which('dovecot', path=f"{os.environ['PATH']}:/usr/sbin") is not None

    def close(self):
        self.dovecot.terminate()
        self.dovecot.wait(PATIENCE)


def recorded_reports(trial):
    """Their digests, with how often each is on record."""
    return collections.Counter(trial.query("SELECT encode(digest, 'hex') FROM mailroom_bounces").split())


def report_problems(trial, client):
    recorded = recorded_reports(trial)
    lost = [name for name in client.delivered if recorded[client.digests[name]] == 0]
    twice = [name for name in client.delivered if recorded[client.digests[name]] > 1]
    return [f'{len(names)} reports {what}: {names[:5]}' for names, what in ((lost, 'lost'), (twice, 'on record twice')) if names]
