#!/usr/bin/python3
"""hand_on.py URL [early]: a program for `mailroom collect --exec` and `mailroom outcomes --exec`: posts each line to a server outside of the
machine, and acknowledges it when that has it, or early, three seconds before it posts it."""

import os
import sys
import threading
import urllib.request


def post(content):
    urllib.request.urlopen(urllib.request.Request(sys.argv[1], content), timeout=20).close()


for line in sys.stdin.buffer:
    name, _, content = line.split(b' ', 2)
    if sys.argv[2:] == ['early']:
        threading.Timer(3, post, [content]).start()
    else:
        post(content)
    os.write(3, b'ok ' + name + b'\n')
