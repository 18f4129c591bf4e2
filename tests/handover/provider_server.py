#!/usr/bin/python3
"""provider_server.py DIRECTORY MODE [OPTION]…: a server that mails are sent to as to Amazon SES, which also gives out the credentials of a
role, or as to Resend. Writes its port into DIRECTORY/port, and a line of JSON with headers and body into DIRECTORY/taken for each mail, before it
answers. MODE says what it answers:

ok                       200, with an id of each mail
partly                   200 to several mails, but the second of them is refused
limited                  200, and that the limit of requests is used up for a second
whole                    refuses several mails at once, and then each second one
error STATUS NAME TEXT   this error, with the further OPTIONs as headers `Name=Value`
cut                      to the first request no byte of a 200, to the next one byte, and so on; the whole answer at last
cut-kept                 closes a connection that has carried a request before, without an answer
silent                   nothing
account FILE             as the JSON in FILE says: the bodies of `account` and of the addresses and domains in `identities`
domains FILE             the JSON in FILE to whoever asks for the domains
"""
import base64
import json
import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote

DIRECTORY, MODE, OPTIONS = sys.argv[1], sys.argv[2], sys.argv[3:]
log = os.open(f'{DIRECTORY}/taken', os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
lock = threading.Lock()
served = 0
WHOLE = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 40\r\n\r\n{"MessageId":"id-whole","id":"id-whole"}'
CREDENTIALS = {'AccessKeyId': 'ASIAROLE', 'SecretAccessKey': 'geheim', 'Token': 'session', 'Code': 'Success',
               'Expiration': time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(time.time() + 3600))}


class Handler(BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    requests_here = 0
    count = 0  # of mails in a request for several

    def log_message(self, *_):
        pass

    def answer(self, status, value, **headers):
        body = (value if isinstance(value, str) else json.dumps(value)).encode()
        self.send_response(status)
        self.send_header('Content-Length', str(len(body)))
        for name, text in headers.items():
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(body)

    def do_PUT(self):
        self.answer(200, 'metadata-token' if 'X-aws-ec2-metadata-token-ttl-seconds' in self.headers else 'no ttl')

    def do_GET(self):
        metadata = '/latest/meta-data/iam/security-credentials/'
        if self.path.startswith(metadata):
            if self.headers['X-aws-ec2-metadata-token'] != 'metadata-token':
                return self.answer(401, 'no token')
            return self.answer(200, CREDENTIALS if self.path == metadata + 'mailer' else 'mailer\n')
        if self.path == '/container':
            return self.answer(200, CREDENTIALS) if self.headers['Authorization'] == 'pod' else self.answer(403, '')
        if MODE == 'domains':
            with open(OPTIONS[0], encoding='utf-8') as file:
                return self.answer(200, json.load(file))
        if MODE != 'account':
            return self.answer_mode(0)
        with open(OPTIONS[0], encoding='utf-8') as file:
            facts = json.load(file)
        if self.path == '/v2/email/account':
            return self.answer(200, facts['account'])
        identity = facts['identities'].get(unquote(self.path.removeprefix('/v2/email/identities/')))
        if identity is None:
            return self.answer(404, {'message': 'no such identity'}, **{'x-amzn-ErrorType': 'NotFoundException'})
        return self.answer(200, identity)

    def do_POST(self):
        global served
        body = json.loads(self.rfile.read(int(self.headers['Content-Length'])))
        with lock:
            number = served
            served += 1
        self.count = len(body) if isinstance(body, list) else 0
        taken = {'headers': {name.lower(): value for name, value in self.headers.items()}, 'path': self.path, 'at': time.monotonic()}
        if self.path.startswith('/emails'):
            taken['body'] = body
        else:
            taken['mail'] = base64.b64decode(body['Content']['Raw']['Data']).decode()
            taken['body'] = {key: value for key, value in body.items() if key != 'Content'}
        os.write(log, (json.dumps(taken) + '\n').encode())
        self.answer_mode(number)

    def answer_mode(self, number):
        self.requests_here += 1
        if MODE == 'error':
            status, name, text = OPTIONS[:3]
            headers = dict(option.split('=', 1) for option in OPTIONS[3:])
            return self.answer(int(status), {'message': text, 'name': name, 'statusCode': int(status)}, **{'x-amzn-ErrorType': name + ':http://internal.example/'}, **headers)
        if MODE == 'silent':
            threading.Event().wait()
        if MODE == 'cut' and number < len(WHOLE):
            self.wfile.write(WHOLE[:number])
            self.close_connection = True
            return None
        if MODE == 'cut-kept' and self.requests_here > 1:
            self.close_connection = True
            return None
        if MODE == 'whole' and (self.count > 0 or number % 2 == 0):
            return self.answer(422, {'statusCode': 422, 'name': 'validation_error', 'message': 'Invalid `to` field'})
        limit = {'ratelimit-limit': '2', 'ratelimit-remaining': '0', 'ratelimit-reset': '1'} if MODE == 'limited' else {}
        return self.answer(200, self.success(number), **limit)

    def success(self, number):
        if self.count == 0:
            return {'MessageId': f'id-{number}', 'id': f'id-{number}'}
        ids = [{'id': f'id-{number}-{mail}'} for mail in range(self.count)]
        if MODE != 'partly':
            return {'data': ids}
        return {'data': ids[:1] + ids[2:], 'errors': [{'index': 1, 'message': 'Invalid `to` field'}]}


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request, client_address):
        pass  # a client may close the connection at any time


server = Server(('127.0.0.1', 0), Handler)
with open(f'{DIRECTORY}/port.new', 'w', encoding='ascii') as file:
    file.write(f'{server.server_address[1]}\n')
os.rename(f'{DIRECTORY}/port.new', f'{DIRECTORY}/port')
server.serve_forever()
