"""Commands of mailroom that run in the machine when its power is cut, and what they have done by then."""

import subprocess

from companies import Company
from machine import PATIENCE, finish, run
from parties import Client


class Commands(Client):
    """Runs a command in the machine until it ends with 0, which is noted, and then the next. `words(number)`: of mailroom; None if there is nothing
    to do yet."""

    def __init__(self, kind, trial, words):
        super().__init__(kind)
        self.trial, self.words = trial, words
        self.done, self.last, self.number = [], None, None  # `last`: the last that was begun

    def work(self):
        if self.number is None:
            self.number = next(self.numbers)
        words = self.words(self.number)
        if words is None:
            self.stopped.wait(0.1)
            return
        self.last = self.number
        if self.trial.broken == self.kind:
            self._note()
            self.stopped.wait(0.2)
            return
        process = self.trial.mailroom(*words)
        try:
            if process.wait(PATIENCE) == 0:
                self._note()
        except subprocess.TimeoutExpired as error:
            raise OSError('no end') from error
        self.stopped.wait(0.1)

    def _note(self):
        self.done.append(self.number)
        self.trial.promises.noted(self.kind)
        self.number = None


class Forgotten(Company):
    """Addresses whose mails wait, and that are forgotten."""

    def __init__(self, trial):
        super().__init__(trial)
        self.clients = [Commands('forget', trial, self.words)]

    def words(self, number):
        self.trial.query(f"SELECT mailroom_send(ARRAY['forget-{number}@mail.example'], subject => 'forget-{number}', text => 'x', send_after => now() + '1 hour')")
        return ('message', 'forget', f'forget-{number}@mail.example', '--yes')

    def problems(self):
        client = self.clients[0]
        dump = run('pg_dump', '--data-only', '-d', f'{self.trial.dsn} dbname=postgres')
        there = [number for number in client.done if f'forget-{number}@' in dump]
        mailed = [number for number in client.done if f'forget-{number}' in self.trial.relay.taken]
        return [f'{len(numbers)} forgotten and {what}: {numbers[:5]}' for numbers, what in ((there, 'still there'), (mailed, 'mailed')) if numbers]


class Applied(Company):
    """A file of queues, in two versions in turn."""

    def __init__(self, trial):
        super().__init__(trial)
        self.clients = [Commands('apply', trial, self.words)]

    def words(self, number):
        path = f'{self.trial.machine.directory}/queues.{number % 2}.yaml'
        with open(path, 'w', encoding='ascii') as file:
            file.write(f'queues:\n  applied: {{actions: [applied], priority: {10 + number % 2}, batch_limit: {20 + number % 2}}}\n')
        return ('queue', 'apply', path, '--yes', '--reason', f'apply-{number}')

    def prepare(self):
        self.trial.command('action', 'create', 'applied', '--yes')

    def problems(self):
        client = self.clients[0]
        priority, limit = self.trial.query("SELECT priority, batch_limit FROM mailroom_queues WHERE name = 'applied'").split()
        found = []
        if int(priority) - 10 != int(limit) - 20:
            found.append(f'half of a file is applied: priority {priority}, batch_limit {limit}')
        if client.done and client.done[-1] == client.last and int(priority) - 10 != client.last % 2:
            found.append(f'the file that was applied last is not: priority {priority}')
        recorded = self.trial.query("SELECT reason FROM mailroom_operations WHERE reason LIKE 'apply-%'").split()
        # Where the one before it did nothing, there was nothing to do.
        unrecorded = [number for number in client.done if number - 1 in client.done and f'apply-{number}' not in recorded]
        return [*found, *([f'{len(unrecorded)} applied and not on record: {unrecorded[:5]}'] if unrecorded else [])]


class Migrated(Company):
    """A schema for each cut, that is migrated. Few, since a server that died flushes each file of all before it starts. No database: to drop one
    waits for a checkpoint, and so for all that the others write."""

    def __init__(self, trial):
        super().__init__(trial)
        self.clients = [Commands('migrate', trial, self.words)]

    def words(self, number):
        if number > self.trial.cuts:
            return None
        self.trial.query(f'SET client_min_messages = error; DROP SCHEMA IF EXISTS "migrated_{number - 1}" CASCADE; CREATE SCHEMA IF NOT EXISTS migrated_{number}')
        return ('migrate', '--schema', f'migrated_{number}')

    def problems(self):
        client, found = self.clients[0], []
        for name in self.trial.query("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'migrated%'").split():
            number = int(name.partition('_')[2])
            if number in client.done and finish(self.trial.mailroom('migrate', 'status', '--schema', name)) != 0:
                found.append(f'migrated and not up to date: {name}')
            for words in (('migrate',), ('migrate', 'verify')):
                if finish(self.trial.mailroom(*words, '--schema', name)) != 0:
                    found.append(f'{" ".join(words)} fails on {name}')
        return found
