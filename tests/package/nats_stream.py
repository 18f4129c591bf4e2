#!/usr/bin/python3
"""nats_stream.py create|tokens: makes the stream MAILROOM on the NATS server of play_package, or prints how many tokens its
messages have. There is no package with a client that would.
"""

import base64
import json
import socket
import sys


class Server:
    def __init__(self):
        self.stream = socket.create_connection(('127.0.0.1', 4222), timeout=30).makefile('rwb')
        self.stream.readline()  # INFO
        self.write(b'CONNECT {"verbose":false,"user":"mailroom","pass":"open sesame"}')
        self.write(b'SUB answers 1')

    def write(self, line):
        self.stream.write(line + b'\r\n')
        self.stream.flush()

    def ask(self, subject, question):
        """What JetStream answers to a request."""
        text = json.dumps(question).encode()
        self.write(f'PUB $JS.API.{subject} answers {len(text)}'.encode() + b'\r\n' + text)
        while True:
            words = self.stream.readline().split()
            if words[0] == b'MSG':
                return json.loads(self.stream.read(int(words[-1]) + 2))
            if words[0] == b'PING':
                self.write(b'PONG')
            elif words[0] == b'-ERR':
                sys.exit(f'nats_stream.py: {words}')


def main():
    server = Server()
    if sys.argv[1] == 'create':
        answer = server.ask('STREAM.CREATE.MAILROOM', {
            'name': 'MAILROOM', 'subjects': ['mailroom.>'], 'retention': 'limits', 'storage': 'file', 'num_replicas': 1})
        sys.exit(answer.get('error', {}).get('description'))
    count = server.ask('STREAM.INFO.MAILROOM', {})['state']['messages']
    messages = [server.ask('STREAM.MSG.GET.MAILROOM', {'seq': number}) for number in range(1, count + 1)]
    print(sum(len(json.loads(base64.b64decode(each['message']['data']))['tokens']) for each in messages))


if __name__ == '__main__':
    main()
