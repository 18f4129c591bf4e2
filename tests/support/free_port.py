"""A port for a server that is told which one it has."""

import random
import socket


def free_port():
    """Below those that the kernel gives to clients: one of them could have it before the server listens."""
    for _ in range(1000):
        port = random.randrange(10000, 30000)
        with socket.socket() as probe:
            if probe.connect_ex(('127.0.0.1', port)) == 0:
                continue
        with socket.socket() as probe:
            try:
                probe.bind(('127.0.0.1', port))
                return port
            except OSError:
                continue
    raise RuntimeError('no port is free')
