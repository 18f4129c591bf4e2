"""A server outside of the machine whose power is cut: it takes what mailroom hands over by HTTP, and stands in for Amazon SES and Resend."""

import base64
import hashlib
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

NUMBER = re.compile(r'^Subject: ([a-z]+-\d+)\r?$', re.MULTILINE)


class Receiver(ThreadingHTTPServer):
    """`taken`: name: [(identity, digest)], of mails and lines; `told`: name: states of its outcomes. A request with an Idempotency-Key that it
    has is answered as the first one was, as Resend does it; `wrong` has what Resend refuses then."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, taken):
        super().__init__(('127.0.0.1', 0), Handler)
        self.taken, self.told, self.answers, self.wrong = taken, {}, {}, []
        self.repeated = 0
        self.lock = threading.Lock()
        self.url = f'http://127.0.0.1:{self.server_address[1]}'
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request, client_address):
        pass  # a client may die at any time

    def close(self):
        self.shutdown()
        self.server_close()

    def take(self, name, identity, content):
        self.taken[name].append((identity, hashlib.sha256(content).digest()))

    def resend(self, key, body):
        """One mail, or several."""
        digest = hashlib.sha256(body).digest()
        if key in self.answers:
            self.repeated += 1
            if self.answers[key][0] != digest:
                self.wrong.append(f'the key {key} with another request')
                return 409, {'statusCode': 409, 'name': 'invalid_idempotent_request', 'message': 'another request'}
            return 200, self.answers[key][1]
        mails = json.loads(body)
        several = isinstance(mails, list)
        for mail in mails if several else [mails]:
            self.take(mail['subject'], b'', json.dumps([mail.get('text'), mail['to']]).encode())
        ids = [{'id': f'{len(self.answers)}-{place}'} for place in range(len(mails) if several else 1)]
        self.answers[key] = digest, {'data': ids} if several else ids[0]
        return 200, self.answers[key][1]

    def ses(self, body):
        mail = base64.b64decode(json.loads(body)['Content']['Raw']['Data'])
        self.take(NUMBER.search(mail.decode())[1], re.search(rb'^Message-ID: *(\S+)', mail, re.MULTILINE | re.IGNORECASE)[1], mail)
        return 200, {'MessageId': hashlib.sha256(mail).hexdigest()}

    def lines(self, body):
        for token in json.loads(body)['tokens']:
            self.take(token['message']['reference'], b'', json.dumps([token['id'], token['message']['id']]).encode())
        return 200, {}

    def outcomes(self, body):
        outcome = json.loads(body)
        self.told.setdefault(outcome.get('reference'), []).append(outcome['state'])
        return 200, {}


class Handler(BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers['Content-Length']))
        server = self.server
        with server.lock:
            if self.path.startswith('/emails'):
                status, answer = server.resend(self.headers['Idempotency-Key'], body)
            elif self.path.startswith('/v2/email'):
                status, answer = server.ses(body)
            else:
                status, answer = {'/lines': server.lines, '/outcomes': server.outcomes}[self.path](body)
        data = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header('Content-Type', 'application/json')
        self.send_header('Content-Length', str(len(data)))
        self.end_headers()
        self.wfile.write(data)
