"""Who promises and who is promised, around a machine whose power is cut: clients that note what they were told, and a relay that notes what it
took. They have power."""

import asyncio
import collections
import hashlib
import itertools
import random
import re
import select
import smtplib
import socket
import threading
import time
import traceback

import psycopg2
import psycopg2.extensions
from aiosmtpd.controller import Controller

PATIENCE = 20  # for an answer
SENDER, RECIPIENT = 'shop@shop.example', 'ada@mail.example'
NUMBER = re.compile(rb'^Subject: ([a-z]+-\d+)\r?$', re.MULTILINE)


def wait_for_answer(session):
    """Of PostgreSQL, for each statement and each connection."""
    end = time.monotonic() + PATIENCE
    while True:
        state = session.poll()
        if state == psycopg2.extensions.POLL_OK:
            return
        left = max(0, end - time.monotonic())
        ready = select.select(*(([session], [], []) if state == psycopg2.extensions.POLL_READ else ([], [session], [])), left)
        if not any(ready):
            raise psycopg2.OperationalError('no answer')


psycopg2.extensions.set_wait_callback(wait_for_answer)


class Relay:
    """Takes every mail. taken: name: [(Message-ID, digest of the bytes)]."""

    def __init__(self):
        self.taken = collections.defaultdict(list)
        # With a name, as otherwise it looks for one at each connection, in the DNS.
        self.controller = Controller(self, hostname='127.0.0.1', port=0, data_size_limit=0, server_hostname='relay.test')
        # The library asks the port that it was given whether it is served.
        with socket.create_server(('127.0.0.1', 0)) as free:
            self.controller.port = free.getsockname()[1]
        self.controller.start()
        self.url = f'smtp://127.0.0.1:{self.controller.port}'

    async def handle_DATA(self, _server, _session, envelope):
        await asyncio.sleep(0)
        mail = envelope.original_content or envelope.content
        name = NUMBER.search(mail)
        identity = re.search(rb'^Message-ID: *(\S+)', mail, re.MULTILINE | re.IGNORECASE)
        self.taken[name[1].decode() if name else '?'].append((identity[1] if identity else b'', hashlib.sha256(mail).digest()))
        return '250 2.0.0 Ok'

    def close(self):
        self.controller.stop()


class Promises:
    """What was acknowledged, by kind of client; what was said never to come."""

    def __init__(self):
        self.lock = threading.Lock()
        self.kept = {}  # name: kind
        self.never = {}  # name: why
        self.done = collections.Counter()  # by kind of client

    def noted(self, kind):
        with self.lock:
            self.done[kind] += 1

    def acknowledged(self, name):
        kind = name.partition('-')[0]
        self.noted(kind)
        with self.lock:
            self.kept[name] = kind

    def withdrawn(self, name, why):
        with self.lock:
            self.kept.pop(name, None)
            self.never[name] = why


class Client(threading.Thread):
    """Works until it is stopped; a lost connection is none of its concern."""

    def __init__(self, name):
        super().__init__(daemon=True)
        self.kind = name
        self.numbers = itertools.count()
        self.stopped = threading.Event()
        self.failure = None  # what ended it, other than a lost connection
        self.refusal = None  # the last one

    def run(self):
        while not self.stopped.is_set():
            try:
                self.work()
            except (OSError, smtplib.SMTPException, psycopg2.Error):
                self.stopped.wait(0.05)
            except Exception:
                self.failure = traceback.format_exc()
                return

    def stop(self):
        """What is wrong with it in the end."""
        self.stopped.set()
        self.join(2 * PATIENCE)
        if self.is_alive():
            return f'the client {self.kind} does not end'
        return f'the client {self.kind} failed: {self.failure}' if self.failure else None


class SmtpClient(Client):
    """Repeats a mail, byte for byte, until it is told 250. `place`: a unix socket, or host and port. `broken`: "answer" takes it for
    stored as soon as it is sent, "again" sends each once more, with another date."""

    def __init__(self, name, place, promises, broken=None):
        super().__init__(name)
        self.place, self.promises, self.broken = place, promises, broken
        self.waiting = None
        self.refusals = collections.Counter()

    def work(self):
        session = smtplib.SMTP(local_hostname='client', timeout=PATIENCE)
        session.sock = socket.socket(socket.AF_UNIX if isinstance(self.place, str) else socket.AF_INET)
        session.sock.settimeout(PATIENCE)
        session.sock.connect(self.place)
        session.file = None
        if session.getreply()[0] != 220:
            raise smtplib.SMTPException('no greeting')
        session.ehlo('client')
        while not self.stopped.is_set():
            if self.waiting is None:
                self.waiting = f'{self.kind}-{next(self.numbers)}'
            name = self.waiting
            mail = (f'From: {SENDER}\r\nTo: {RECIPIENT}\r\nSubject: {name}\r\nDate: Sat, 28 Nov 2026 12:00:00 +0000\r\n'
                    f'Message-ID: <{name}@client.example>\r\n\r\n{name * 50}\r\n')
            if self.broken == 'answer':
                self.promises.acknowledged(name)
                self.waiting = None
            try:
                session.sendmail(SENDER, RECIPIENT, mail)
                if self.broken == 'again':
                    session.sendmail(SENDER, RECIPIENT, mail.replace('28 Nov', '27 Nov').replace('@client', '@other'))
            except smtplib.SMTPResponseException as refusal:
                self.refusals[refusal.smtp_code] += 1
                self.refusal = refusal
                raise
            self.promises.acknowledged(name)
            self.waiting = None


class SqlClient(Client):
    """Transactions that commit, that roll back, and that cancel what is scheduled. `more`: further arguments of mailroom_send().
    `broken`: "cancel" rolls back what it cancels."""

    def __init__(self, name, dsn, promises, seed, more="action => 'message'", broken=None):
        super().__init__(name)
        self.more, self.broken = more, broken
        self.dsn, self.promises, self.dice = dsn, promises, random.Random(seed)

    def work(self):
        session = psycopg2.connect(f'{self.dsn} dbname=postgres')
        try:
            while not self.stopped.is_set():
                self.transact(session)
        finally:
            session.close()

    def transact(self, session):
        name = f'{self.kind}-{next(self.numbers)}'
        chance = self.dice.random()
        cursor = session.cursor()
        ahead = "now() + '1 hour'" if chance < 0.1 and self.broken != 'cancel' else "now() + '1 second'" if chance < 0.2 else 'NULL'
        cursor.execute(f'SELECT mailroom_send(ARRAY[%s], subject => %s, text => %s, reference => %s, send_after => {ahead}, {self.more})',
                       (RECIPIENT, name, name * 50, name))
        (message,) = cursor.fetchone()
        if chance > 0.9:
            self.promises.withdrawn(name, 'rolled back')
            session.rollback()
            return
        session.commit()
        self.promises.acknowledged(name)
        if chance < 0.1:
            cursor.execute('SELECT mailroom_cancel(%s)', (message,))
            if self.broken == 'cancel':
                session.rollback()
            session.commit()
            self.promises.withdrawn(name, 'cancelled')


class SpoolClients(Client):
    """sendmail(1) of the machine, again and again, for which no service is there: what it says with 0 comes through a pipe."""

    def __init__(self, name, machine, promises, environment, preload=''):
        super().__init__(name)
        self.machine, self.promises, self.environment, self.preload = machine, promises, environment, preload
        self.next = 0
        self.end = f'{machine.directory}/end'  # a file that ends it

    def stop(self):
        with open(self.end, 'w', encoding='ascii'):
            pass
        return super().stop()

    def work(self):
        script = f'''
i={self.next}
while [ ! -e {self.end} ]; do
  printf 'From: {SENDER}\\nSubject: {self.kind}-%d\\n\\nx\\n' $i | LD_PRELOAD={self.preload} "$MAILROOM" sendmail -i -f {SENDER} {RECIPIENT} && echo $i
  i=$((i + 1))
  sleep 0.02
done'''
        process = self.machine.start('bash', '-c', script, env=self.environment, stdout=-1, stderr=-3, text=True)
        for line in process.stdout:
            self.next = int(line) + 1
            self.promises.acknowledged(f'{self.kind}-{int(line)}')
        process.wait(PATIENCE)
        # Of a number whose answer was lost nothing is known: it is not used again.
        self.next += 1
        self.stopped.wait(1)


__all__ = ['Promises', 'Relay', 'SmtpClient', 'SpoolClients', 'SqlClient']
