#!/usr/bin/python3
"""reach.py MAILROOM POST_MAILS [RUNS]: how fast mails reach providers' servers on this machine, as ratios in one run. Needs a PostgreSQL in PGHOST
and PGUSER, and the modules that scripts/install-packages --tests installs.

- `ses`: the drain of a backlog into aws-ses-v2-local, 16 requests in flight, beside POST_MAILS, which posts as many mails by libcurl alone
- `resend`: mails a second into a server that takes five requests a second, many mails in a request beside one
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, '..', 'support'))
sys.argv, ARGUMENTS = sys.argv[:1] + sys.argv[1:2], sys.argv
from free_port import free_port  # noqa: E402
from own_database import OwnDatabase, run  # noqa: E402
from ses_local_test import START  # noqa: E402

MAILROOM, POST_MAILS = ARGUMENTS[1:3]
RUNS = int(ARGUMENTS[3]) if len(ARGUMENTS) > 3 else 5
MAILS = 4000
REQUESTS_A_SECOND = 5


class Limited(BaseHTTPRequestHandler):
    """Resend with its limit: a further request within a second is refused."""
    protocol_version = 'HTTP/1.1'
    lock = threading.Lock()
    second, taken = 0, 0

    def log_message(self, *_):
        pass

    def do_POST(self):
        mails = json.loads(self.rfile.read(int(self.headers['Content-Length'])))
        with Limited.lock:
            now = int(time.time())
            if now != Limited.second:
                Limited.second, Limited.taken = now, 0
            Limited.taken += 1
            left = REQUESTS_A_SECOND - Limited.taken
        if left < 0:
            return self.answer(429, {'statusCode': 429, 'name': 'rate_limit_exceeded', 'message': 'Too many requests'}, 0)
        return self.answer(200, {'data': [{'id': 'x'} for _ in mails]} if isinstance(mails, list) else {'id': 'x'}, left)

    def answer(self, status, value, left):
        body = json.dumps(value).encode()
        self.send_response(status)
        for name, text in {'Content-Length': len(body), 'ratelimit-remaining': left, 'ratelimit-reset': 1}.items():
            self.send_header(name, str(text))
        self.end_headers()
        self.wfile.write(body)


def insert(database, mails):
    database.psql(f"""INSERT INTO mailroom_messages (recipients, subject, text)
                      SELECT ARRAY['user' || n || '@mail.example'], 'mail ' || n, 'text ' || n FROM generate_series(1, {mails}) AS n""")


def drain(*options):
    """The seconds that it took, and the largest resident set in MiB."""
    began = time.monotonic()
    sender = subprocess.Popen([MAILROOM, 'send', '--once', *options], stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(sender.pid, 0)
    sender.returncode = os.waitstatus_to_exitcode(status)
    if sender.returncode != 0:
        raise RuntimeError('mailroom send failed')
    return time.monotonic() - began, usage.ru_maxrss / 1024


def reach_ses(database, directory):
    port = free_port()
    url = f'http://127.0.0.1:{port}'
    server = subprocess.Popen(['node', '-e', START, str(port)], stdout=subprocess.DEVNULL)
    credentials = os.path.join(directory, 'credentials')
    with open(os.open(credentials, os.O_WRONLY | os.O_CREAT, 0o600), 'w', encoding='ascii') as file:
        file.write('[default]\naws_access_key_id = AKIDEXAMPLE\naws_secret_access_key = geheim\n')
    os.environ.update(MAILROOM_SEND_RELAY='ses://eu-west-1', MAILROOM_SEND_SES_ENDPOINT=url, MAILROOM_SEND_SES_CREDENTIALS_FILE=credentials)
    time.sleep(2)
    rates = {'mailroom': [], 'libcurl': []}
    memory = []
    for _ in range(RUNS + 1):
        for name in rates:
            urllib.request.urlopen(urllib.request.Request(url + '/clear-store', method='POST')).close()
            if name == 'mailroom':
                insert(database, MAILS)
                seconds, size = drain('--connections', '16', '--batch-limit', '400')
                rates[name].append(MAILS / seconds)
                memory.append(size)
            else:
                rates[name].append(MAILS / float(run(POST_MAILS, url, str(MAILS), '16')))
    server.kill()
    server.wait()
    ratios = [mailroom / libcurl for mailroom, libcurl in zip(rates['mailroom'], rates['libcurl'])][1:]
    for name, values in rates.items():
        print(f'ses {name}: {statistics.median(values[1:]):.0f} mails/s ({min(values[1:]):.0f} to {max(values[1:]):.0f})')
    print(f'ses ratio: {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}), {max(memory):.0f} MiB')


def reach_resend(database, directory):
    server = ThreadingHTTPServer(('127.0.0.1', 0), Limited)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    key = os.path.join(directory, 'key')
    with open(os.open(key, os.O_WRONLY | os.O_CREAT, 0o600), 'w', encoding='ascii') as file:
        file.write('re_geheim\n')
    os.environ.update(MAILROOM_SEND_RELAY='resend://', MAILROOM_SEND_RESEND_ENDPOINT=f'http://127.0.0.1:{server.server_address[1]}',
                      MAILROOM_SEND_RESEND_KEY_FILE=key)
    rates = {}
    for name, mails, relay in (('batches', 5000, 'resend://'), ('single', 50, 'resend://,smtp://127.0.0.1:1')):
        os.environ['MAILROOM_SEND_RELAY'] = relay
        insert(database, mails)
        seconds, memory = drain()
        rates[name] = mails / seconds
        print(f'resend {name}: {rates[name]:.1f} mails/s at {REQUESTS_A_SECOND} requests/s, {memory:.0f} MiB')
    print(f'resend ratio: {rates["batches"] / rates["single"]:.0f}')
    server.shutdown()


def main():
    database = OwnDatabase('reach')
    database.create(MAILROOM, MAILROOM_SECRET_KEY='ab' * 32, MAILROOM_SEND_FROM='no-reply@app.example')
    try:
        with tempfile.TemporaryDirectory() as directory:
            reach_ses(database, directory)
            reach_resend(database, directory)
    finally:
        database.drop()


main()
