#!/usr/bin/python3
"""webhook_server.py DIRECTORY MODE [--secret whsec_…]… [--certificate FILE --key FILE]: a server for `mailroom collect --to`. Writes its
port into DIRECTORY/port, and appends `WEBHOOK-ID ATTEMPT TOKEN-ID…` to DIRECTORY/taken for each request that it takes, before
it answers. Refuses with 400 what is not signed with every --secret. MODE says how it behaves otherwise:

ok           answers 200
outcomes     names outcomes: tokens whose id ends in 3 are rejected, those that end in 5 deferred at the first attempt
STATUS       answers with this status, and takes nothing
throttle     answers 429 with Retry-After: 2 to the first request, and takes the others
redirect     redirects to itself
big          answers 200 with 10 MB
big-header   answers with a header of 10 MB
half         takes the request, and answers half of a 200, the first time
half-header  takes the request, and ends within the header, the first time
late         takes the request, and answers after 4 s, the first time
silent       takes the request, and never answers
drop         takes the request, and closes the connection, the first time
drop-kept    takes the request, and closes the connection if it has carried another request, the first time
lose         closes the connection instead of taking the request, the first time
chaos        does one of these things with one request in twenty, by chance; appends `unanswered` when it took a request
             and gives no whole answer in time
"""
import argparse
import base64
import hashlib
import hmac
import json
import os
import random
import ssl
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

parser = argparse.ArgumentParser()
parser.add_argument('directory')
parser.add_argument('mode')
parser.add_argument('--secret', action='append', default=[])
parser.add_argument('--certificate')
parser.add_argument('--key')
parser.add_argument('--port', type=int, default=0)
arguments = parser.parse_args()
UNANSWERED = ('half', 'half-header', 'drop', 'late')
CHAOS = [*UNANSWERED, 'lose', '500', '503', '307', 'throttle', 'big', 'outcomes']
log = os.open(f'{arguments.directory}/taken', os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
seen = set()
lock = threading.Lock()


def first_time(name):
    with lock:
        known = name in seen
        seen.add(name)
        return not known


class Handler(BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    has_served = False

    def log_message(self, *_):
        pass

    def is_signed(self, body):
        signed = f'{self.headers["webhook-id"]}.{self.headers["webhook-timestamp"]}.'.encode() + body
        signatures = (self.headers['webhook-signature'] or '').split(' ')
        for secret in arguments.secret:
            key = base64.b64decode(secret.removeprefix('whsec_'))
            wanted = 'v1,' + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
            if wanted not in signatures:
                return False
        return abs(time.time() - int(self.headers['webhook-timestamp'])) < 300

    def answer(self, status, body=b'', **headers):
        self.send_response(status)
        self.send_header('Content-Length', str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace('_', '-'), value)
        self.end_headers()
        self.wfile.write(body)

    def take(self, tokens):
        ids = ' '.join(str(token['id']) for token in tokens)
        os.write(log, f'{self.headers["webhook-id"]} {self.headers["mailroom-attempt"]} {ids}\n'.encode())
        for name, value in self.headers.items():
            if name.startswith('ce-'):
                os.write(log, f'{name}: {value}\n'.encode())

    def do_POST(self):
        body = self.rfile.read(int(self.headers['Content-Length']))
        tokens = json.loads(body)['tokens']
        mode = random.choice(CHAOS) if arguments.mode == 'chaos' and random.random() < 0.05 else arguments.mode
        name = self.headers['webhook-id']
        if arguments.secret and not self.is_signed(body):
            return self.answer(400, b'the signature is wrong')
        if mode.isdigit():
            return self.answer(int(mode), b'as told')
        if mode == 'throttle' and (arguments.mode == 'chaos' or first_time('throttle')):
            return self.answer(429, b'too many', Retry_After='2')
        if mode == 'redirect':
            return self.answer(307, Location='/elsewhere')
        if mode == 'outcomes':
            return self.answer_outcomes(tokens)
        if mode == 'big-header':
            return self.answer(200, x='y' * 10_000_000)
        if mode == 'lose' and (arguments.mode == 'chaos' or first_time(name)):
            self.close_connection = True
            return None
        self.take(tokens)
        if mode == 'big':
            return self.answer(200, b'x' * 10_000_000)
        if mode == 'drop-kept' and self.has_served and first_time(name):
            self.close_connection = True
            return None
        if mode == 'silent':
            threading.Event().wait()
        self.has_served = True
        if mode in UNANSWERED and (arguments.mode == 'chaos' or first_time(name)):
            os.write(log, b'unanswered\n')
            self.close_connection = True
            if mode == 'half':
                self.wfile.write(b'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf')
            if mode == 'half-header':
                self.wfile.write(b'HTTP/1.1 200 OK\r\nContent-Le')
            if mode == 'late':
                time.sleep(4)
                return self.answer(200, b'{}')
            return None
        return self.answer(200, b'{}')

    def answer_outcomes(self, tokens):
        named = []
        for token in list(tokens):
            if token['id'] % 10 == 3:
                named.append({'id': token['id'], 'outcome': 'rejected', 'reason': 'no such mailbox'})
            elif token['id'] % 10 == 5 and first_time(token['id']):
                named.append({'id': token['id'], 'outcome': 'deferred', 'reason': 'busy'})
            else:
                continue
            tokens.remove(token)
        self.take(tokens)
        self.answer(200, json.dumps({'tokens': named}).encode(), Content_Type='application/json')


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request, client_address):
        pass  # a client may close the connection at any time


server = Server(('127.0.0.1', arguments.port), Handler)
if arguments.certificate:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(arguments.certificate, arguments.key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
with open(f'{arguments.directory}/port.new', 'w', encoding='ascii') as file:
    file.write(f'{server.server_address[1]}\n')
os.rename(f'{arguments.directory}/port.new', f'{arguments.directory}/port')
server.serve_forever()
