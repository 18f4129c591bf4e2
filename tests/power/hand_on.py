#!/usr/bin/python3
"""hand_on.py URL: a program for `mailroom collect --exec` and `mailroom outcomes --exec`: posts each line to a server outside of the machine,
and acknowledges it when that has it."""

import os
import sys
import urllib.request

for line in sys.stdin.buffer:
    batch, _, content = line.split(b' ', 2)
    urllib.request.urlopen(urllib.request.Request(sys.argv[1], content), timeout=20).close()
    os.write(3, b'ok ' + batch + b'\n')
