#!/usr/bin/python3
"""trace_server.py DIRECTORY MODE: a collector of traces, OTLP over HTTP with JSON. Writes its port into DIRECTORY/port, and appends the
body of each request that it takes, a line each, to DIRECTORY/taken before it answers. MODE says how it behaves:

ok          answers 200
STATUS      answers with this status, and takes nothing
limits      answers 429 with Retry-After: 1 the first time, and takes the others
big         takes the request, and answers 200 with 10 MB
redirect    redirects to itself, and takes nothing
slow        takes the request, and answers a byte a second
silent      reads the request, and never answers
key         answers 401 unless the header X-Key is secret
grpc        begins with what a server of HTTP/2 says first, whatever it is asked
"""
import json
import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

directory, mode = sys.argv[1:3]
port = int(sys.argv[4]) if sys.argv[3:4] == ['--port'] else 0
log = os.open(f'{directory}/taken', os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
lock = threading.Lock()
requests = 0


class Handler(BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def log_message(self, *_):
        pass

    def answer(self, status, body=b'{}', **headers):
        self.send_response(status)
        self.send_header('Content-Type', 'application/json')
        self.send_header('Content-Length', str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace('_', '-'), value)
        self.end_headers()
        self.wfile.write(body)

    def handle(self):
        if mode != 'grpc':
            return super().handle()
        self.wfile.write(bytes.fromhex('000006040000000000000500004000'))
        return self.rfile.readline()

    def do_POST(self):
        global requests
        body = self.rfile.read(int(self.headers['Content-Length']))
        with lock:
            requests += 1
            number = requests
        if self.path != '/v1/traces' or self.headers['Content-Type'] != 'application/json':
            return self.answer(404)
        if mode == 'key' and self.headers['X-Key'] != 'secret':
            return self.answer(401)
        if mode.isdigit():
            return self.answer(int(mode))
        if mode == 'limits' and number <= 1:
            return self.answer(429, Retry_After='1')
        if mode == 'redirect':
            return self.answer(307, Location=f'http://127.0.0.1:{self.server.server_port}/v1/traces')
        if mode == 'silent':
            time.sleep(600)
            return None
        os.write(log, json.dumps(json.loads(body)).encode() + b'\n')
        if mode == 'big':
            return self.answer(200, b'{"x":"' + b'y' * 10_000_000 + b'"}')
        if mode == 'slow':
            self.send_response(200)
            self.send_header('Content-Length', '600')
            self.end_headers()
            for _ in range(600):
                self.wfile.write(b' ')
                time.sleep(1)
            return None
        return self.answer(200)


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        pass


server = Server(('127.0.0.1', port), Handler)
with open(f'{directory}/port.new', 'w', encoding='utf-8') as file:
    file.write(f'{server.server_port}\n')
os.rename(f'{directory}/port.new', f'{directory}/port')
server.serve_forever()
