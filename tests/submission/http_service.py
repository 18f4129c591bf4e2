"""A `mailroom submission` that takes mails over HTTP, its keys, and a client of one connection."""

import http.client
import json
import os
import sys

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'support')]
from own_database import OwnDatabase, run  # noqa: E402
from submission_service import MAILROOM, PATIENCE, Submission, eventually  # noqa: E402

MAIL = {'from': 'Shop <no-reply@shop.example>', 'to': ['ada@example.org'], 'subject': 'Hello', 'text': 'It works.'}


def create_database(purpose):
    """With the roles shop and other, whose keys are KEYS."""
    database = OwnDatabase(purpose)
    database.create(MAILROOM)
    run(MAILROOM, 'init', '--roles')
    database.psql('CREATE ROLE shop; CREATE ROLE other; GRANT mailroom_producer TO shop, other; GRANT shop, other TO mailroom_submission')
    return database


def create_key(role, *more):
    return run(MAILROOM, 'key', 'create', role, *more, stderr=-3).split()[-1]


class HttpService(Submission):
    """Started with settings; `http` is its port."""

    def __init__(self, port=0, doors=(), **settings):
        url = os.environ['MAILROOM_DATABASE_URL'] + ' user=mailroom_submission'
        super().__init__(list(doors), MAILROOM_SUBMISSION_HTTP=f'127.0.0.1:{port}', MAILROOM_DATABASE_URL=url, **settings)

    @property
    def http(self):
        def found():
            return [entry['at'] for entry in self.lines if entry.get('message') == 'takes mails over HTTP']
        if not eventually(found):
            raise AssertionError(f'it does not take mails over HTTP: {self.lines}')
        return int(found()[0].rpartition(':')[2])


class Client:
    """Keeps its connection, as a pool does."""

    def __init__(self, port, key):
        self.connection = http.client.HTTPConnection('127.0.0.1', port, timeout=PATIENCE)
        self.key = key

    def ask(self, method, path, body=None, **headers):
        """The status and the JSON of the answer."""
        headers = {name.replace('_', '-'): value for name, value in headers.items()}
        headers.setdefault('authorization', f'Bearer {self.key}')
        text = None if body is None else body if isinstance(body, (bytes, str)) else json.dumps(body)
        self.connection.request(method, path, text, headers)
        reply = self.connection.getresponse()
        self.headers = reply.headers
        return reply.status, json.loads(reply.read())

    def send(self, key=None, **fields):
        more = {'idempotency_key': key} if key else {}
        return self.ask('POST', '/emails', {**MAIL, **fields}, **more)

    def close(self):
        self.connection.close()


__all__ = ['MAIL', 'Client', 'HttpService', 'create_database', 'create_key']
