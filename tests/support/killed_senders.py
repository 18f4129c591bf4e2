"""Senders that are killed while they mail."""

import random
import signal
import subprocess
import time


def kill_senders(mailroom, kills, before_each, met, seed=20261127):
    """Starts `mailroom send` after each `before_each(number)`, and kills it at a moment of the time that the first one took, which
    is not killed: so often, and then until `met()`, six times as often at most. Then mails what is left. Returns how many were started.
    """
    dice = random.Random(seed)
    before_each(0)
    began = time.monotonic()
    subprocess.run([mailroom, 'send', '--once'], check=True, stderr=subprocess.DEVNULL)
    whole = time.monotonic() - began
    started = 1
    while started <= kills or (not met() and started <= 6 * kills):
        before_each(started)
        sender = subprocess.Popen([mailroom, 'send'], stderr=subprocess.DEVNULL)
        time.sleep(dice.uniform(0.1, 1.2) * whole)
        sender.send_signal(signal.SIGKILL)
        sender.wait()
        started += 1
    subprocess.run([mailroom, 'send', '--once'], check=False, stderr=subprocess.DEVNULL)
    return started
