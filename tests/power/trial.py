"""A trial: PostgreSQL, mailroom and what works with them, whose power is cut again and again; and what must hold in the end."""

import collections
import os
import random
import re
import subprocess
import time

from breakages import BREAKAGES
from commands import Applied, Forgotten, Migrated
from companies import HttpDoor, Lines, Outcomes
from disk_faults import DiskFaults
from forgetful_disk import LOSSES, PATIENCE
from machine import Machine, eventually, finish, run
from parties import Promises, Relay, SmtpClient, SpoolClients, SqlClient
from receivers import Receiver
from reports import Bounces, Mailbox
from standby import Standby

COMPANIES = {'http': HttpDoor, 'lines': Lines, 'outcomes': Outcomes, 'bounces': Bounces, 'imap': Mailbox, 'forget': Forgotten, 'apply': Applied, 'migrate': Migrated}
SETTINGS = {'fsync': ['fsync=off'], 'commit': ['synchronous_commit=off']}
BATCH = 10
SENDERS = 2


class Trial:
    def __init__(self, arguments, broken, directory, watchdog):
        self.arguments, self.broken, self.step = arguments, broken, watchdog.step
        self.step('the machine')
        self.dice = random.Random(arguments.seed)
        self.machine = Machine(directory, arguments.file_system, 'nobarrier' if broken == 'barrier' else 'errors=remount-ro' if arguments.fault == 'read-only' else '', arguments.atom)
        watchdog.machine = self.machine
        self.promises = Promises()
        self.final_states = []  # (subject, state) of each recipient, when everything has drained
        self.sockets = f'{directory}/sockets'
        self.log = open(f'{directory}/mailroom.log', 'ab+')
        self.standby = Standby(self.machine) if arguments.standby or broken == 'standby' else None
        self.dsn = f'host={self.sockets} user=postgres' if self.standby is None else self.standby.dsn
        self.environment = dict(os.environ, MAILROOM=os.path.abspath(arguments.mailroom), MAILROOM_DATABASE_URL=f'{self.dsn} dbname=postgres',
                                MAILROOM_SEND_FROM='shop@shop.example', MAILROOM_SECRET_KEY='ab' * 32, MAILROOM_SEND_BATCH_LIMIT=str(BATCH),
                                MAILROOM_SUBMISSION_LISTEN=f'{self.sockets}/smtp=shop', MAILROOM_SUBMISSION_SPOOL=f'{self.machine.root}/spool')
        if arguments.relay == 'smtp':
            self.relay = Relay()
            self.environment['MAILROOM_SEND_RELAY'] = self.relay.url
        else:
            self.relay = Receiver(collections.defaultdict(list))
            self.environment.update(self._provider(arguments.relay))
        names = arguments.companies if broken is None else [BREAKAGES[broken][1]]
        for name in names:
            if name != 'none' and not COMPANIES[name].is_possible():
                print(f'NOT RUN: power cuts with {name}: a program that it needs is not installed')
        self.companies = [COMPANIES[name](self) for name in names if name != 'none' and COMPANIES[name].is_possible()]
        preload = self._library() if broken == 'directory' else ''
        # At this address is nobody: each mail goes through the spool.
        away = dict(self.environment, MAILROOM_SUBMISSION_LISTEN=f'{self.sockets}/nobody=shop')
        self.clients = [SmtpClient('first', f'{self.sockets}/smtp', self.promises, broken),
                        SmtpClient('second', f'{self.sockets}/smtp', self.promises, broken),
                        SqlClient('sql', self.dsn, self.promises, arguments.seed, broken=broken), SqlClient('more', self.dsn, self.promises, arguments.seed + 1, broken=broken),
                        SpoolClients('spool', self.machine, self.promises, away, preload)]
        self.everyone = [*self.clients, *(client for company in self.companies for client in company.clients)]
        self.faults = DiskFaults(self)
        self.lost_sectors = self.cuts = self.cuts_in_start = 0

    def _provider(self, name):
        """The settings of a provider of mails, for which `relay` stands in."""
        path = f'{self.machine.directory}/{name}'
        with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), 'w', encoding='ascii') as file:
            file.write('re_secret_secret\n' if name == 'resend' else '[default]\naws_access_key_id = AKIDEXAMPLE\naws_secret_access_key = secret\n')
        if name == 'resend':
            return {'MAILROOM_SEND_RELAY': 'resend://', 'MAILROOM_SEND_RESEND_ENDPOINT': self.relay.url, 'MAILROOM_SEND_RESEND_KEY_FILE': path}
        return {'MAILROOM_SEND_RELAY': 'ses://eu-west-1', 'MAILROOM_SEND_SES_ENDPOINT': self.relay.url, 'MAILROOM_SEND_SES_CREDENTIALS_FILE': path}

    def _library(self):
        path = f'{self.machine.directory}/no_directory_sync.so'
        run('cc', '-shared', '-fPIC', '-o', path, os.path.join(os.path.dirname(os.path.abspath(__file__)), 'no_directory_sync.c'))
        return path

    def mailroom(self, *words, **options):
        return self.machine.start(self.arguments.mailroom, *words, env=self.environment, stdout=self.log, stderr=self.log, **options)

    def command(self, *words):
        """What mailroom says, run to its end outside of the machine."""
        done = subprocess.run([self.arguments.mailroom, *words], env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False, timeout=PATIENCE)
        if done.returncode != 0:
            raise AssertionError(f'{" ".join(words)}: {done.stdout}')
        return done.stdout

    def query(self, sql):
        """OSError: the connection was lost."""
        command = ('psql', '-XAtqF', '\t', '-d', f'{self.dsn} dbname=postgres', '-c', sql)
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, timeout=PATIENCE)
        if done.returncode != 0:
            raise (OSError if done.returncode == 2 else AssertionError)(f'{sql}: {done.stderr}')
        return done.stdout

    def start(self):
        self.machine.power_on()
        server = self.machine.start_server(*SETTINGS.get(self.broken, []))
        return server

    def wait_for_server(self, server):
        self.step('the server starts')
        if not eventually(lambda: self.machine.is_up() or server.poll() is not None, 90) or server.poll() is not None:
            with open(self.machine.log, encoding='utf-8', errors='replace') as log:
                words = [line.strip()[31:] for line in log if re.search('PANIC|FATAL|could not|invalid', line) and 'starting up' not in line]
            raise AssertionError(f'the server does not start ({server.poll()}): {words[-3:]}')

    def prepare(self):
        self.machine.make()
        self.wait_for_server(self.start())
        if finish(self.mailroom('migrate')) != 0:
            raise AssertionError('migrate failed')
        self.command('init', '--roles', '--yes')
        self.query('CREATE ROLE shop LOGIN; GRANT mailroom_producer TO shop; GRANT shop TO mailroom_submission; GRANT EXECUTE ON FUNCTION mailroom_submit TO shop')
        for company in self.companies:
            company.prepare()
        self.query('CHECKPOINT')
        if self.standby is not None:
            self.standby.start()
        run('sync', '-f', self.machine.root)
        if self.broken == 'disk':
            self.machine.disk.tell('lie')
        self._work()

    def _work(self):
        self.services = [self.mailroom('submission')] + [self.mailroom('send', *(['--from', f'shop{number}@shop.example'] if self.broken == 'bytes' else [])) for number in range(SENDERS)]
        for company in self.companies:
            company.start()

    def cut(self):
        # ext4 itself does not bear that a flush fails and what was written before it is lost.
        loss = self.arguments.loss or ('none' if self.arguments.fault == 'flush' else self.dice.choice(LOSSES))
        self.lost_sectors += self.machine.cut(loss, self.dice.random())

    def play(self):
        self.prepare()
        for client in self.everyone:
            client.start()
        try:
            end = time.monotonic() + self.arguments.seconds
            while self.cuts < self.arguments.rounds and (self.cuts == 0 or time.monotonic() < end):
                self.cuts += 1
                self._play_round()
            if self.standby is not None:
                self._promote()
        finally:
            self.step('the end of the clients')
            failures = [failure for failure in [client.stop() for client in self.everyone] if failure]
        if failures:
            raise AssertionError('; '.join(failures))
        self._drain()

    def _play_round(self):
        self.step(f'work before cut {self.cuts}')
        self._let_work()
        if not self.faults.strike():
            return
        self.step(f'cut {self.cuts}')
        self.cut()
        server = self.start()
        # Some die again while they recover.
        while self.dice.random() < 0.2:
            time.sleep(self.dice.uniform(0.02, 0.5))
            self.cuts_in_start += 1
            self.cut()
            server = self.start()
        self.wait_for_server(server)
        self._work()

    def _promote(self):
        self.step('the promotion')
        if self.broken == 'standby':
            self.standby.leave()
        self._let_work()
        self.cut()
        self.machine.power_on()
        self.standby.promote()
        self._work()

    def _let_work(self):
        """Until each client and the relay have something to lose, and a moment longer."""
        done, taken = dict(self.promises.done), len(self.relay.taken)

        def is_busy():
            for client in self.everyone:
                if client.failure is not None:
                    raise AssertionError(f'the client {client.kind} failed: {client.failure}')
            return all(self.promises.done[client.kind] > done.get(client.kind, 0) for client in self.everyone) and len(self.relay.taken) > taken
        if not eventually(is_busy, 90):
            raise AssertionError(f'not everyone gets on: {done}, then {dict(self.promises.done)}; {taken} mails taken, then {len(self.relay.taken)}')
        time.sleep(self.dice.uniform(0, 0.7))

    def states(self):
        """(subject, state) of each recipient."""
        return [line.split('\t') for line in self.query(
            'SELECT m.subject, s.state FROM mailroom_messages m, LATERAL mailroom_message_status(m.id) s').splitlines()]

    def _drain(self):
        self.step('the spool drains')
        spool = f'{self.machine.root}/spool'
        if not eventually(lambda: not [name for name in os.listdir(spool) if name[0] != '.']):
            raise AssertionError(f'the spool is not empty: {os.listdir(spool)[:5]}')
        self.step('the queue drains')
        # A cut loses what autovacuum goes by, so nothing has analyzed the tables, and the states of each mail would take five times as long.
        self.query('ANALYZE')
        if not eventually(lambda: not {state for _, state in self.states()} & {'waiting', 'deferred', 'leased', 'pending'}):
            raise AssertionError(f'the queue does not drain: {collections.Counter(state for _, state in self.states())}')

        for company in self.companies:
            self.step(f'the end of {type(company).__name__}')
            if not eventually(company.is_done):
                raise AssertionError(f'{type(company).__name__} does not get done')

    def problems(self):
        self.step('the oracle')
        self.final_states = self.states()
        taken, kept, never = self.relay.taken, self.promises.kept, self.promises.never
        states = collections.defaultdict(set)
        rows = collections.Counter()
        for name, state in self.final_states:
            states[name].add(state)
            rows[name] += 1
        lost = sorted(name for name in kept if name not in taken and name not in states)
        given_up = [name for name in kept if name not in taken and states[name] & {'unknown', 'rejected', 'expired'}]
        wrongly = sorted(f'{name} ({why})' for name, why in never.items() if name in taken or (why == 'rolled back' and name in states))
        differing = sorted(name for name, mails in taken.items() if len(set(mails)) > 1)
        stored_twice = sorted(name for name, count in rows.items() if count > 1 and name)  # a forgotten mail has no name
        repeated = collections.Counter(len(mails) for mails in taken.values() if len(mails) > 1)
        phantom = [name for name in kept if name not in taken and states[name] == {'accepted'}]
        kinds = collections.Counter(kept.values())
        print(f'acknowledged {len(kept)} ({", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items()))}), lost {len(lost)}, '
              f'given up on record {len(given_up)}, mailed twice {sum(repeated.values())} (at most {max(repeated, default=1)} times), '
              f'{self.cuts} cuts of work, {self.cuts_in_start} of a start, {self.lost_sectors} sectors lost')
        found = []
        for problem, names in (('lost', lost), ('mailed though it was not to be', wrongly), ('with other bytes when mailed again', differing),
                               ('stored twice', stored_twice), ('accepted on record, and taken by no relay', phantom)):
            if names:
                found.append(f'{len(names)} {problem}: {", ".join(names[:5])}')
        most = BATCH * (SENDERS + 2) * (self.cuts + self.cuts_in_start)
        if sum(repeated.values()) > most:
            kinds = collections.Counter(name.partition('-')[0] for name, mails in taken.items() if len(mails) > 1)
            found.append(f'more than a batch of each sender is mailed twice at a cut: {dict(kinds)}')
        refused = {code: count for code, count in self.refusals().items() if code >= 500}
        if refused:
            found.append(f'clients by SMTP were refused for good: {refused}')
        if self.arguments.relay != 'smtp':
            print(f'requests repeated with their key: {self.relay.repeated}')
            found += self.relay.wrong[:5]
        return [*found, *self.faults.unsaid(), *(problem for company in self.companies for problem in company.problems())]

    def refusals(self):
        """How often which code."""
        return sum((client.refusals for client in self.clients[:2]), collections.Counter())

    def broken_files(self):
        self.step('the check of the files')
        if self.standby is not None:
            return []  # the old server was not started again
        finish(self.machine.start(f'{self.machine.bin}/pg_ctl', '-D', f'{self.machine.root}/data', '-m', 'fast', '-w', 'stop', as_owner=True,
                                  stdout=subprocess.DEVNULL, cwd='/'))
        self.machine.check()
        return []

    def close(self):
        self.step('the end')
        if self.standby is not None:
            self.standby.close()
        for company in self.companies:
            company.close()
        self.machine.close()
        self.relay.close()
        if self.arguments.verbose or self.arguments.fault:
            self._print_log()
        self.log.close()

    def _print_log(self):
        """All of it, or the warnings and errors, each once with how often."""
        self.log.seek(0)
        lines = self.log.read().decode(errors='replace').splitlines()
        if self.arguments.verbose:
            print('\n'.join(lines))
            return
        said = collections.Counter(re.sub(r'[^ ]*mailroom-power[^ ]*|\d+', '…', line.partition(' ')[2]) for line in lines if re.search(' (warn|error) ', line))
        for line, count in said.most_common(12):
            print(f'{count:5} {line[:200]}')
        print('refusals to clients by SMTP:', dict(self.refusals()))
