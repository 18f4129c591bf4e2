"""What else runs in the machine, and who works with it: each company has programs that start with the power, clients outside, and what must hold
in the end."""

import collections
import http.client
import json
import os
import socket

from parties import PATIENCE, Client, SqlClient
from receivers import Receiver

HERE = os.path.dirname(os.path.abspath(__file__))


class Company:
    """`commands`: of mailroom, for as long as the machine has power."""

    def __init__(self, trial):
        self.trial = trial
        self.clients, self.commands = [], []

    def program(self, url, broken):
        """Posts what it is given. Breaks as it is told to."""
        return f'/usr/bin/python3 {HERE}/hand_on.py {url}' + (' early' if self.trial.broken == broken else '')

    def prepare(self):
        """Once, when the schema is there."""

    def start(self):
        for words in self.commands:
            self.trial.mailroom(*words)

    @staticmethod
    def is_possible():
        """On this machine."""
        return True

    def close(self):
        """Ends what has power."""

    def is_done(self):
        """In the end, when the clients are."""
        return True

    def problems(self):
        return []


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__('localhost', timeout=PATIENCE)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(PATIENCE)
        self.sock.connect(self.path)


class HttpClient(Client):
    """Repeats a request with its key until it is told 200, and some once more after it. Cancels some."""

    def __init__(self, trial):
        super().__init__('http')
        self.trial = trial
        self.place, self.key = f'{trial.sockets}/http', ''
        self.waiting = None
        self.differing = []

    def ask(self, connection, path, body, key):
        """The status and what was answered."""
        connection.request('POST', path, json.dumps(body), {'Authorization': f'Bearer {self.key}', 'Content-Type': 'application/json', 'Idempotency-Key': key})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())

    def work(self):
        try:
            connection = UnixConnection(self.place)
            while not self.stopped.is_set():
                self.post(connection)
        except (http.client.HTTPException, json.JSONDecodeError) as error:
            raise OSError('a lost answer') from error

    def post(self, connection):
        number = next(self.numbers) if self.waiting is None else int(self.waiting.partition('-')[2])
        name = self.waiting = f'{self.kind}-{number}'
        mail = {'from': 'shop@shop.example', 'to': 'ada@mail.example', 'subject': name, 'text': name * 50}
        if number % 10 == 0:
            mail['scheduled_at'] = 'in 1 hour'
        if self.trial.broken == 'answer':
            self.trial.promises.acknowledged(name)
            self.waiting = None
        status, answer = self.ask(connection, '/emails', mail, name)
        if status in (409, 503):
            raise OSError(answer['message'])
        if status != 200:
            raise RuntimeError(f'{status} {answer}')
        self.trial.promises.acknowledged(name)
        self.waiting = None
        if number % 10 == 0:
            status, _ = self.ask(connection, f'/emails/{answer["id"]}/cancel', {}, f'cancel {name}')
            if status == 200:
                self.trial.promises.withdrawn(name, 'cancelled')
        elif number % 10 == 1:
            status, again = self.ask(connection, '/emails', mail, name)
            if status == 200 and again != answer:
                self.differing.append(name)


class HttpDoor(Company):
    """Mails over HTTP, with a key. The service is that of SMTP."""

    def __init__(self, trial):
        super().__init__(trial)
        trial.environment['MAILROOM_SUBMISSION_HTTP'] = f'{trial.sockets}/http'
        self.clients = [HttpClient(trial)]

    def prepare(self):
        self.clients[0].key = next(word for word in self.trial.command('key', 'create', 'shop').split() if word.startswith('re_'))

    def problems(self):
        differing = self.clients[0].differing
        return [f'{len(differing)} answered with another id when asked again: {differing[:5]}'] if differing else []


class Lines(Company):
    """Two queues, whose tokens go to a program and to a server."""

    WAYS = ('program', 'server')

    def __init__(self, trial):
        super().__init__(trial)
        self.receiver = Receiver(trial.relay.taken)
        url = f'{self.receiver.url}/lines'
        self.commands = [('collect', '--queue', 'program', '--exec', self.program(url, 'program'), '--format', 'jsonl', '--batch-timeout', '100ms'),
                         ('collect', '--queue', 'server', '--to', url, '--format', 'jsonl', '--batch-timeout', '100ms')]
        self.clients = [SqlClient(way, trial.dsn, trial.promises, trial.arguments.seed + place, f'action => \'{way}\'')
                        for place, way in enumerate(self.WAYS)]

    def prepare(self):
        for way in self.WAYS:
            self.trial.command('action', 'create', way, '--yes')
            self.trial.command('queue', 'create', way, '--action', way, '--yes')


class Outcomes(Company):
    """An application that is told what became of its mails."""

    def __init__(self, trial):
        super().__init__(trial)
        self.receiver = Receiver(collections.defaultdict(list))
        url = f'{self.receiver.url}/outcomes'
        way = ('--exec', self.program(url, 'told')) if trial.broken == 'told' or trial.arguments.seed % 2 else ('--to', url)
        self.commands = [('outcomes', *way)]

    def is_done(self):
        return self.trial.query('SELECT count(*) FROM mailroom_outcomes').strip() == '0'

    def problems(self):
        names = [name for name, kind in self.trial.promises.kept.items() if kind in ('sql', 'more')]
        states = dict(self.trial.final_states)
        # One that a cut kept from being cancelled waits for its hour.
        untold = sorted(f'{name} ({states.get(name)})' for name in names if name not in self.receiver.told and states.get(name) != 'scheduled')
        return [f'{len(untold)} whose outcome nobody was told: {untold[:5]}'] if untold else []
