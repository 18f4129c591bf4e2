#!/usr/bin/python3
"""child.py LOG MODE: a program for `mailroom collect --exec`. Appends `BATCH ATTEMPT TOKEN-ID…` to LOG for each line that
it takes, before it acknowledges it, and `start` when it starts. MODE says how it behaves otherwise:

ok               takes every line
fail             rejects tokens whose id ends in 3, and asks for a retry of those whose id ends in 5, at the first attempt
die-after-take   dies once, after it has taken the third line and before it acknowledges it
die-after-read   dies once, after it has read the third line and before it takes it
die-always       dies after the first line that it reads, each time
exit-at-start    exits before it reads, each time
close            closes its answers once, after the second line
hang             takes nothing and answers nothing
twice            answers each line twice
stranger         answers before each line for a batch that it never had, and what is no answer
flood            answers a million lines that nobody asked for, then nothing
endless-line     answers without an end of the line
never-reads      lives, and reads nothing
deaf             closes its stdin once, after it has read the second line, and acknowledges both
one-by-one       exits after each line that it acknowledges
chaos            does one of these things with one line in twenty, by chance; logs `unanswered` when it has taken a line, and
                 `answered` when it has acknowledged it: on a busy machine it may be killed in between
"""
import json
import os
import random
import sys
import time

log_path, mode = sys.argv[1], sys.argv[2]
log = os.open(log_path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
answers = 1 if 'stdout' in sys.argv[3:] else 3


def say(text):
    data = text.encode()
    while data:
        data = data[os.write(answers, data):]


def once(name):
    """True for the first process that asks."""
    try:
        os.close(os.open(f'{log_path}.{name}', os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    except FileExistsError:
        return False
    return True


def take(batch, attempt, tokens):
    end = '\nunanswered\n' if mode == 'chaos' else '\n'
    os.write(log, f'{batch} {attempt} {" ".join(str(token["id"]) for token in tokens)}{end}'.encode())


os.write(log, b'start\n')
if mode == 'exit-at-start':
    sys.exit(3)
if mode in ('never-reads', 'hang'):
    while mode == 'never-reads' or os.read(0, 65536):
        time.sleep(0.01)
    sys.exit(0)
if mode == 'flood':
    for _ in range(1_000_000):
        say('ok flood.1.1.0123456789abcdef nobody asked\n')
    time.sleep(3600)
if mode == 'endless-line':
    while True:
        say('x' * 65536)
CHAOS = ['die-after-take', 'die-before-take', 'hang-after-take', 'twice', 'stranger', 'flood-now', 'close-after-take']


def misbehave(what, batch):
    """Does `what` before a line is taken."""
    if what == 'die-before-take':
        os._exit(1)
    if what == 'stranger':
        say(f'ok other.1.1.00\nnonsense\nfail {batch} 0 reject unknown token\n')
    while what == 'flood-now':
        say('ok flood.1.1.00\n')


def leave_unanswered(what):
    """Does `what` with a line that is taken."""
    if what == 'close-after-take':
        os.close(answers)
    if what != 'die-after-take':
        time.sleep(3600)
    os._exit(1)


for number, line in enumerate(sys.stdin, 1):
    batch, attempt, body = line.split(' ', 2)
    tokens = json.loads(body)['tokens']
    if mode == 'die-always' or (mode == 'die-after-read' and number == 3 and once('died')):
        os._exit(1)
    chaos = random.choice(CHAOS) if mode == 'chaos' and random.random() < 0.05 else ''
    misbehave(chaos, batch)
    if mode == 'fail':
        for token in [each for each in tokens if each['id'] % 10 == 3]:
            say(f'fail {batch} {token["id"]} reject no such mailbox\n')
            tokens.remove(token)
        for token in [each for each in tokens if each['id'] % 10 == 5 and once(f'retry-{each["id"]}')]:
            say(f'fail {batch} {token["id"]} retry busy\n')
            tokens.remove(token)
    take(batch, attempt, tokens)
    if mode == 'die-after-take' and number == 3 and once('died'):
        os._exit(1)
    if chaos.endswith('after-take'):
        leave_unanswered(chaos)
    if mode == 'stranger':
        misbehave(mode, batch)
    say(f'ok {batch} taken\n')
    if mode == 'chaos':
        os.write(log, b'answered\n')
    if 'twice' in (mode, chaos):
        say(f'ok {batch} taken\n')
    if mode == 'deaf' and number == 2 and once('deaf'):
        os.close(0)
        time.sleep(3600)
    if mode == 'close' and number == 2 and once('closed'):
        os.close(answers)
        time.sleep(3600)
    if mode == 'one-by-one':
        os._exit(0)
