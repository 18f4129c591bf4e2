"""Ends a trial that hangs, and says where: a test that a time limit of ctest kills says nothing."""

import faulthandler
import os
import shutil
import signal
import sys
import threading
import time


def state_of(process):
    """What a process is, what it waits for in the kernel, and where it stands there."""
    words = []
    for name in ('comm', 'wchan', 'stack'):
        try:
            with open(f'/proc/{process}/{name}', encoding='utf-8', errors='replace') as file:
                words.append(' < '.join(line.rpartition(' ')[2].partition('+')[0] for line in file.read().splitlines()[:6]))
        except OSError as error:
            words.append(error.strerror)
    return f'{process} {" | ".join(words)}'


class Watchdog:
    """Ends this process if a step takes longer than `limit` seconds, whatever its threads wait for."""

    def __init__(self, directory, limit=100):
        self.directory, self.limit = directory, limit
        self.machine = None
        self.alarm = None

    def step(self, name):
        self.stop()
        self.alarm = threading.Timer(self.limit, self._end, [name])
        self.alarm.daemon = True
        # For when not even a thread of Python gets its turn.
        faulthandler.dump_traceback_later(self.limit + 15, exit=True, file=sys.stdout)
        self.alarm.start()

    def stop(self):
        if self.alarm is not None:
            self.alarm.cancel()
        faulthandler.cancel_dump_traceback_later()

    def _end(self, name):
        try:
            print(f'failed: "{name}" takes more than {self.limit} s; where each thread stands:', flush=True)
            faulthandler.dump_traceback(sys.stdout)
            if self.machine is not None:
                self._stop_machine()
            shutil.rmtree(self.directory, ignore_errors=True)
            print('0 passed, 1 failed', flush=True)
        finally:
            os._exit(1)

    def _stop_machine(self):
        disk = self.machine.disk.process.pid
        print('the disk, the threads, and the processes of the machine:', flush=True)
        os.kill(disk, signal.SIGUSR1)
        for process in [disk, *(f'{os.getpid()}/task/{thread}' for thread in os.listdir('/proc/self/task')), *self.machine.processes()]:
            print(state_of(process), flush=True)
        time.sleep(1)
        # What waits for it gets an error.
        os.kill(disk, signal.SIGKILL)
        self.machine.unmount_all()
