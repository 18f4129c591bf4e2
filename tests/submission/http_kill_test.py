#!/usr/bin/python3
"""http_kill_test.py MAILROOM [KILLS]: kills the service and its server with SIGKILL while clients ask for mails over HTTP, each of which repeats a
request with its key until it has an answer. Each 200 is one row, each key is one row, and no key that was told 503 alone has one. Needs the PostgreSQL of
with-postgres. Without KILLS five; 100 take some minutes.
"""

import http.client
import os
import sys
import threading
import time
import unittest

sys.dont_write_bytecode = True
KILLS = int(sys.argv.pop(2)) if len(sys.argv) > 2 else 5
sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)),
                os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'support')]
from free_port import free_port  # noqa: E402
from http_service import Client, HttpService, create_database, create_key  # noqa: E402
from submission_service import kill_server  # noqa: E402

CLIENTS = 8
MAILS = 40  # of all between two kills


class HttpKillTest(unittest.TestCase):
    def client(self, client):
        number = 0
        connection = None
        while not self.is_over:
            try:
                connection = connection or Client(self.port, self.key)
                status, answer = connection.send(f'{client}.{number}', subject=f'{client}.{number}')
            except (http.client.HTTPException, OSError, ValueError):
                # It may be stored or not.
                self.unknown.add(f'{client}.{number}')
                if connection:
                    connection.close()
                connection = None
                time.sleep(0.02)
                continue
            if status == 200:
                self.told[f'{client}.{number}'] = answer['id']
                number += 1
            elif status != 503:
                self.wrong.append((status, answer))
        if connection:
            connection.close()

    def wait_for_mails(self):
        """At counts, not at times: a kill meets requests on their way however fast the machine is."""
        count = len(self.told) + MAILS
        while len(self.told) < count and not self.wrong:
            time.sleep(0.001)

    def test_each_200_is_one_row(self):
        database = create_database('http_kill_test')
        self.key = create_key('shop')
        self.port = free_port()
        self.told, self.unknown, self.wrong = {}, set(), []
        self.is_over = False
        service = HttpService(self.port)
        clients = [threading.Thread(target=self.client, args=(i,)) for i in range(CLIENTS)]
        for each in clients:
            each.start()
        for kill in range(KILLS):
            self.wait_for_mails()
            if kill % 2 == 0:
                service.kill()
                service = HttpService(self.port)
            else:
                kill_server()
        self.wait_for_mails()
        self.is_over = True
        for each in clients:
            each.join()
        self.assertEqual(service.stop(), 0)
        self.assertEqual(self.wrong, [])
        rows = database.psql('SELECT idempotency_key, mailroom_email_id(id), subject FROM mailroom_messages').splitlines()
        rows = [row.split('\t') for row in rows]
        keys = [row[0] for row in rows]
        self.assertEqual(len(set(keys)), len(keys), 'a key has two rows')
        stored = {key: id for key, id, _ in rows}
        self.assertEqual({key: stored.get(key) for key in self.told}, self.told, 'a mail that was told 200 is not there')
        self.assertEqual([key for key in stored if key not in self.told and key not in self.unknown], [], 'a mail that was told 503 is there')
        print(f'{KILLS} kills, {len(self.told)} mails, {len(self.unknown)} of them without an answer at least once', file=sys.stderr)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
