"""Brokers that acknowledge a message, from the packages of this Debian, each one server: their clients, and what they have in the end."""

import base64
import json
import os
import socket
import sys
import time

from mail_servers import Packaged
from machine import eventually
from parties import PATIENCE, Client

JETSTREAM = '''listen: "127.0.0.1:{port}"
jetstream {{ store_dir: "/var/lib/nats-server" }}
'''
RABBITMQ = '''listeners.tcp.1 = 127.0.0.1:{port}
'''
AS_RABBITMQ = 'cd /var/lib/rabbitmq && exec setpriv --reuid=rabbitmq --regid=rabbitmq --clear-groups env HOME=/var/lib/rabbitmq RABBITMQ_NODENAME=rabbit@localhost ' \
    'RABBITMQ_LOGS=- RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS="-kernel inet_dist_use_interface {127,0,0,1}" /usr/lib/rabbitmq/bin/rabbitmq-server'
# As in SERVERS of mail_servers.py.
BROKERS = {
    'jetstream': (['nats-server'], '/var/lib/nats-server', '/etc/nats-server.conf', JETSTREAM, 'true', 'nats-server -c /etc/nats-server.conf', ''),
    'rabbitmq-classic': (['rabbitmq-server', 'python3-pika'], '/var/lib/rabbitmq', '/etc/rabbitmq/rabbitmq.conf', RABBITMQ, AS_RABBITMQ, 'true', ''),
    'rabbitmq-quorum': (['rabbitmq-server', 'python3-pika'], '/var/lib/rabbitmq', '/etc/rabbitmq/rabbitmq.conf', RABBITMQ, AS_RABBITMQ, 'true', ''),
}
SETTLING = 15  # seconds after which a queue that was made is on disk


class NatsSession:
    """The protocol of NATS, as far as it is needed."""

    def __init__(self, port):
        self.socket = socket.create_connection(('127.0.0.1', port), PATIENCE)
        self.file = self.socket.makefile('rb')
        self.inbox = f'_INBOX.{os.urandom(8).hex()}'
        self.say(b'CONNECT {"verbose": false, "headers": false}\r\nSUB %s 1\r\n' % self.inbox.encode())
        self.ask('$JS.API.STREAM.CREATE.MAILS', json.dumps({'name': 'MAILS', 'subjects': ['mails'], 'storage': 'file', 'num_replicas': 1}))

    def say(self, text):
        self.socket.sendall(text)

    def ask(self, subject, text):
        body = text.encode()
        self.say(b'PUB %s %s %d\r\n%s\r\n' % (subject.encode(), self.inbox.encode(), len(body), body))
        while line := self.file.readline():
            if line.startswith(b'PING'):
                self.say(b'PONG\r\n')
            elif line.startswith(b'MSG '):
                answer = self.file.read(int(line.split()[-1]))
                self.file.readline()
                return json.loads(answer)
            elif line.startswith((b'HMSG', b'-ERR')):
                break  # nobody is there for it
        raise OSError('no answer')


class JetStreamClient(Client):
    def __init__(self, name, port, promises):
        super().__init__(name)
        self.port, self.promises, self.waiting = port, promises, None

    def work(self):
        session = NatsSession(self.port)
        while not self.stopped.is_set():
            self.waiting = self.waiting or f'{self.kind}-{next(self.numbers)}'
            if 'seq' not in session.ask('mails', self.waiting + '\n' + self.waiting * 50):
                raise OSError('not stored')
            self.promises.acknowledged(self.waiting)
            self.waiting = None


class RabbitClient(Client):
    """Persistent messages to a durable queue, confirmed; one that no queue takes is no promise."""

    def __init__(self, name, connect, promises):
        super().__init__(name)
        self.connect, self.promises, self.waiting = connect, promises, None

    def work(self):
        import pika
        try:
            channel = self.connect()
            channel.confirm_delivery()
            while not self.stopped.is_set():
                self.waiting = self.waiting or f'{self.kind}-{next(self.numbers)}'
                channel.basic_publish('', 'mails', (self.waiting + '\n' + self.waiting * 50).encode(), pika.BasicProperties(delivery_mode=2), mandatory=True)
                self.promises.acknowledged(self.waiting)
                self.waiting = None
        except pika.exceptions.AMQPError as error:
            raise OSError(str(error)) from error


class Broker(Packaged):
    def __init__(self, machine, name):
        super().__init__(machine, name, BROKERS[name])
        self.is_rabbitmq = name.startswith('rabbitmq')

    def make(self):
        super().make()
        if self.is_rabbitmq:
            # What a first start makes is lost with the power, and is no message.
            self._write('/etc/rabbitmq/rabbitmq-env.conf', '')
            cookie = f'{self.machine.root}/queue/.erlang.cookie'
            with open(cookie, 'w', encoding='ascii') as file:
                file.write('ABCDEFGHIJKLMNOPQRST')
            os.chmod(cookie, 0o400)
            owner = os.stat(f'{self.machine.root}/queue')
            os.chown(cookie, owner.st_uid, owner.st_gid)
            sys.path.append(f'{self.root}/usr/lib/python3/dist-packages')

    def _connect(self):
        import pika
        channel = pika.BlockingConnection(pika.ConnectionParameters('127.0.0.1', self.port, socket_timeout=PATIENCE, blocked_connection_timeout=PATIENCE)).channel()
        channel.queue_declare('mails', durable=True, arguments={'x-queue-type': 'quorum' if self.name == 'rabbitmq-quorum' else 'classic'})
        return channel

    def client(self, name, promises):
        return RabbitClient(name, self._connect, promises) if self.is_rabbitmq else JetStreamClient(name, self.port, promises)

    def settle(self):
        """Makes what messages go to, and gives the server time to write that to disk."""
        def is_there():
            try:
                (self._connect if self.is_rabbitmq else lambda: NatsSession(self.port))()
            except Exception:
                return False
            return True
        if not eventually(is_there, 120):
            raise AssertionError(f'{self.name} takes no clients: {self.said()}')
        time.sleep(SETTLING)

    def deliver(self, taken):
        """Reads what it has."""
        self.settle()
        if self.is_rabbitmq:
            channel = self._connect()
            while (message := channel.basic_get('mails', auto_ack=True))[0]:
                taken[message[2].decode().partition('\n')[0]].append('')
            return
        session = NatsSession(self.port)
        state = session.ask('$JS.API.STREAM.INFO.MAILS', '')['state']
        for sequence in range(state['first_seq'], state['last_seq'] + 1):
            message = session.ask('$JS.API.STREAM.MSG.GET.MAILS', json.dumps({'seq': sequence})).get('message')
            if message:
                taken[base64.b64decode(message['data']).decode().partition('\n')[0]].append('')
