"""What else a disk does, and what is said of it."""

import errno
import re
import subprocess
import time

from forgetful_disk import PATIENCE
from machine import eventually

# What else a disk does; all but the last three end with the power off and on again, as nothing else ends them.
FAULTS = {
    'write': 'a write fails',
    'flush': 'a flush fails',
    'read-only': 'the file system remounts itself read-only',
    'full': 'the file system is full for two seconds',
    'slow-2ms': 'a flush takes 2 ms, for two seconds',
    'slow-50ms': 'likewise 50 ms',
}
# What the log says of a fault, and `mailroom status` meanwhile.
DOWN = (['connection lost'], 'hint: (start the server|wait)')
SAYS = {
    'write': DOWN,
    'flush': DOWN,
    'read-only': DOWN,
    'full': (['No space left on device'], 'queue'),
    'slow-2ms': ([], 'queue'),
    'slow-50ms': ([], 'queue'),
}


class DiskFaults:
    """The fault of a trial, if it is to have one."""

    def __init__(self, trial):
        self.trial = trial
        self.status = []

    def strike(self):
        """The fault of the trial, if it is to have one; then the power is cut, unless it passes by itself: false."""
        fault, machine = self.trial.arguments.fault, self.trial.machine
        if fault in ('write', 'flush'):
            machine.disk.tell('fail', fault, errno.EIO)
            self._wait_for_panic()
        elif fault == 'read-only':
            machine.break_file_system()
            self._wait_for_panic()
        elif fault == 'full':
            with machine.full():
                eventually(lambda: b'No space left' in self._logged(), 10)
                self._ask_status()
        elif fault in ('slow-2ms', 'slow-50ms'):
            machine.disk.tell('slow', 0.002 if fault == 'slow-2ms' else 0.05)
            time.sleep(2)
            self._ask_status()
            machine.disk.tell('slow', 0)
        return fault not in ('full', 'slow-2ms', 'slow-50ms')

    def _wait_for_panic(self):
        """PostgreSQL does not go on after such a fault, and whoever works with it says so."""
        if not eventually(lambda: not self.trial.machine.is_up()):
            raise AssertionError('PostgreSQL goes on')
        self._ask_status()

    def _ask_status(self):
        done = subprocess.run([self.trial.arguments.mailroom, 'status'], env=self.trial.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False, timeout=PATIENCE)
        self.status.append(done.stdout)

    def _logged(self):
        with open(self.trial.log.name, 'rb') as log:
            return log.read()

    def unsaid(self):
        """What the log and `status` should have said of the fault."""
        if self.trial.arguments.fault is None:
            return []
        in_log, in_status = SAYS[self.trial.arguments.fault]
        log = self._logged().decode(errors='replace')
        found = [f'the log does not say "{words}"' for words in in_log if not re.search(words, log)]
        if not in_log and re.search(' (warn|error) ', log):
            found.append('the log warns')
        return found + [f'status says {text[:200]!r}' for text in self.status if not re.search(in_status, text)]
