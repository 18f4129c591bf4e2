#!/usr/bin/python3
"""lying_nats.py LOG [always]: a server that speaks enough of NATS and JetStream for a publisher, on a free port of
127.0.0.1, which it prints. It has a stream MAILROOM for `mailroom.>`. It acknowledges a message with sequence 0 when it
comes for the first time, as some servers do that have not stored it, and with `always` each time. Appends the id of
each message to LOG."""
import json
import os
import socketserver
import sys
import threading

log = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
always = sys.argv[2:] == ['always']
stored = {}
lock = threading.Lock()
STREAM = {
    'type': 'io.nats.jetstream.api.v1.stream_info_response',
    'config': {'name': 'MAILROOM', 'subjects': ['mailroom.>'], 'retention': 'limits', 'max_consumers': -1, 'max_msgs': -1,
               'max_bytes': -1, 'max_age': 0, 'max_msgs_per_subject': -1, 'max_msg_size': -1, 'discard': 'new',
               'storage': 'file', 'num_replicas': 1, 'duplicate_window': 3_600_000_000_000},
    'created': '2026-11-23T12:00:00Z',
    'state': {'messages': 0, 'bytes': 0, 'first_seq': 0, 'first_ts': '2026-11-23T12:00:00Z', 'last_seq': 0,
              'last_ts': '2026-11-23T12:00:00Z', 'consumer_count': 0}}


def acknowledgement(message_id):
    with lock:
        os.write(log, message_id.encode() + b'\n')
        if message_id not in stored:
            stored[message_id] = len(stored) + 1
            return {'stream': 'MAILROOM', 'seq': 0, 'duplicate': True}
        return {'stream': 'MAILROOM', 'seq': 0 if always else stored[message_id]}


class Client(socketserver.StreamRequestHandler):
    def handle(self):
        self.subscriptions = {}
        self.say('INFO', json.dumps({'server_id': 'LYING', 'server_name': 'lying', 'version': '2.10.20', 'proto': 1,
                                     'headers': True, 'jetstream': True, 'max_payload': 1048576}))
        for line in self.rfile:
            words = line.decode().split()
            verb = words[0].upper() if words else ''
            if verb == 'PING':
                self.say('PONG')
            elif verb == 'SUB':
                self.subscriptions[words[1]] = words[-1]
            elif verb in ('PUB', 'HPUB'):
                self.published(words, self.rfile.read(int(words[-1]) + 2))

    def say(self, *words):
        self.wfile.write(' '.join(words).encode() + b'\r\n')

    def published(self, words, message):
        subject, reply = words[1:3]
        if subject == '$JS.API.STREAM.INFO.MAILROOM':
            return self.answer(reply, STREAM)
        header = message.decode(errors='replace').split('\r\n')
        ids = [line.partition(':')[2].strip() for line in header if line.startswith('Nats-Msg-Id:')]
        return self.answer(reply, acknowledgement(ids[0]))

    def answer(self, reply, content):
        text = json.dumps(content)
        for pattern, subscription in self.subscriptions.items():
            if reply == pattern or (pattern.endswith('*') and reply.startswith(pattern[:-1])):
                return self.say('MSG', reply, subscription, f'{len(text)}\r\n{text}')
        return None


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True


with Server(('127.0.0.1', 0), Client) as server:
    print(server.server_address[1], flush=True)
    server.serve_forever()
