"""Senders that are killed while they mail."""

import random
import signal
import subprocess
import time


def kill_senders(mailroom, kills, before_each, options=(), seed=20261127):
    """Starts `mailroom send` and kills it a moment later, so many times; then mails what is left."""
    dice = random.Random(seed)
    for kill in range(kills):
        before_each(kill)
        sender = subprocess.Popen([mailroom, 'send', *options], stderr=subprocess.DEVNULL)
        time.sleep(dice.uniform(0.02, 0.25))
        sender.send_signal(signal.SIGKILL)
        sender.wait()
    subprocess.run([mailroom, 'send', '--once', *options], check=False, stderr=subprocess.DEVNULL)
