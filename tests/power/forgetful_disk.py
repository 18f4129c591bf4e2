"""A disk whose write cache is lost when its power is cut: the only file, `disk`, of a FUSE file system, for a loop device. What was written
is on the medium after a flush; at a cut each write since then is lost, or is there, or is there in part. It can fail as well: with errors, and
slowly. ForgetfulDisk runs this file as a program of its own."""

import ctypes
import errno
import faulthandler
import multiprocessing.connection
import os
import random
import select
import signal
import stat
import struct
import subprocess
import sys
import time

SECTOR = 512
MOST = 1024 * 1024  # bytes of a request
MOUNT_FLAGS = 2 | 4  # nosuid, nodev
LIBC = ctypes.CDLL(None, use_errno=True)
PATIENCE = 60
# In front of a command. A function that Python runs between fork and exec can wait for ever for a lock that another thread had.
DIES_WITH_PARENT = ('setpriv', '--pdeathsig', 'KILL', '--')
ROOT, FILE = 1, 2  # nodes
# The operations of fuse.h.
LOOKUP, FORGET, GETATTR, SETATTR, OPEN, READ, WRITE, STATFS, RELEASE, FSYNC, FLUSH, INIT, OPENDIR, RELEASEDIR, INTERRUPT, DESTROY, BATCH_FORGET = (
    1, 2, 3, 4, 14, 15, 16, 17, 18, 20, 25, 26, 27, 29, 36, 38, 42)
HEADER = struct.Struct('<IIQQIIII')
REPLY = struct.Struct('<IiQ')
UNANSWERED = (FORGET, BATCH_FORGET, INTERRUPT, DESTROY)

# What becomes of writes that were not flushed.
LOSSES = ('all', 'after', 'scattered')


class Medium:
    """An image, and for each sector that was written since the last flush what the medium has of it."""

    def __init__(self, path, atom):
        self.file = os.open(path, os.O_RDWR)
        self.size = os.fstat(self.file).st_size
        self.atom = atom
        self.unflushed = []  # (atom, its bytes before), in the order of the writes

    def read(self, offset, size):
        return os.pread(self.file, size, offset)

    def write(self, offset, data):
        first, end = offset // self.atom, -(-(offset + len(data)) // self.atom)
        before = os.pread(self.file, (end - first) * self.atom, first * self.atom)
        # A write is one entry: what it changed, to be taken back at a cut.
        self.unflushed.append((first, before))
        os.pwrite(self.file, data, offset)

    def flush(self):
        self.unflushed.clear()

    def lose(self, loss, seed):
        """Takes back writes since the last flush, the newest first; with `none` it loses none. Returns how many atoms were lost."""
        dice = random.Random(seed)
        if loss == 'after':
            writes = self.unflushed[dice.randint(0, len(self.unflushed)):]
        elif loss == 'none':
            writes = []
        else:
            writes = self.unflushed
        kept = set()  # atoms whose later version has been kept, or has been dealt with
        lost = 0
        for first, before in reversed(writes):
            for i in range(len(before) // self.atom):
                atom = first + i
                if atom in kept:
                    continue
                # Scattered: this version stays on the medium by chance; otherwise the one before is looked at.
                if loss == 'scattered' and dice.random() < 0.5:
                    kept.add(atom)
                    continue
                os.pwrite(self.file, before[i * self.atom:(i + 1) * self.atom], atom * self.atom)
                lost += 1
        self.unflushed.clear()
        return lost


class Server:
    """Answers the kernel, and obeys the test, in one thread: a command takes effect between two requests."""

    def __init__(self, fuse, medium, commands):
        self.fuse, self.medium, self.commands = fuse, medium, commands
        self.is_frozen = self.has_no_power = False
        self.lies = False
        self.failing = {}  # operation: errno
        self.delay = 0  # seconds a flush
        self.flushes = 0

    def run(self):
        while True:
            waited = [self.commands] if self.is_frozen else [self.commands, self.fuse]
            ready, _, _ = select.select(waited, [], [])
            if self.commands in ready:
                command, arguments = self.commands.recv()
                self.commands.send(getattr(self, command)(*arguments))
                if command == 'end':
                    return
            elif self.fuse in ready:
                try:
                    self.answer(os.read(self.fuse, MOST + 65536))
                except OSError as error:
                    if error.errno == errno.ENODEV:  # unmounted
                        self.is_frozen = True
                    elif error.errno not in (errno.EINTR, errno.ENOENT, errno.EAGAIN):
                        raise

    # The commands.
    def freeze(self):
        self.is_frozen = True

    def cut(self, loss, seed):
        lost = self.medium.lose(loss, seed)
        self.is_frozen, self.has_no_power = False, True
        return lost

    def power(self):
        self.has_no_power = False
        self.failing = {}
        self.delay = 0

    def fail(self, operation, number):
        self.failing = {operation: number} if number else {}

    def slow(self, seconds):
        self.delay = seconds

    def lie(self):
        self.lies = True

    def flushed(self):
        return self.flushes

    def end(self):
        pass

    # The requests.
    def answer(self, request):
        _, operation, unique, node, _, _, _, _ = HEADER.unpack_from(request)
        if operation in UNANSWERED:
            return
        try:
            reply, error = self.reply_to(operation, node, request), 0
        except OSError as failure:
            reply, error = b'', failure.errno
        os.write(self.fuse, REPLY.pack(REPLY.size + len(reply), -error, unique) + reply)

    def reply_to(self, operation, node, request):
        body = HEADER.size
        if operation == INIT:
            return struct.pack('<IIIIHHIIHHI28x', 7, 31, MOST, 1 | 1 << 5 | 1 << 22, 64, 48, MOST, 1, MOST // 4096, 0, 0)
        if operation == LOOKUP:
            if request[body:].rstrip(b'\0') != b'disk':
                raise OSError(errno.ENOENT, '')
            return struct.pack('<QQQQII', FILE, 0, 3600, 3600, 0, 0) + self.attributes(FILE)
        if operation in (GETATTR, SETATTR):
            return struct.pack('<QII', 3600, 0, 0) + self.attributes(node)
        if operation in (OPEN, OPENDIR):
            return struct.pack('<QII', 0, 1 if node == FILE else 0, 0)  # past the page cache
        if operation == STATFS:
            return struct.pack('<QQQQQIIII24x', 0, 0, 0, 0, 0, 4096, 255, 4096, 0)
        if operation in (RELEASE, RELEASEDIR, FLUSH):
            return b''
        if operation in (READ, WRITE, FSYNC):
            return self.transfer(operation, request, body)
        raise OSError(errno.ENOSYS, '')

    def transfer(self, operation, request, body):
        if self.has_no_power:
            raise OSError(errno.EIO, '')
        if operation == FSYNC:
            self.flushes += 1
            time.sleep(self.delay)
            self.fails('flush')
            if not self.lies:
                self.medium.flush()
            return b''
        _, offset, size = struct.unpack_from('<QQI', request, body)
        if operation == READ:
            return self.medium.read(offset, size)
        self.fails('write')
        self.medium.write(offset, request[body + 40:body + 40 + size])
        return struct.pack('<II', size, 0)

    def fails(self, operation):
        if operation in self.failing:
            raise OSError(self.failing[operation], '')

    def attributes(self, node):
        is_file = node == FILE
        size = self.medium.size if is_file else 0
        mode = stat.S_IFREG | 0o600 if is_file else stat.S_IFDIR | 0o700
        return struct.pack('<QQQQQQIIIIIIIIII', node, size, size // SECTOR, 0, 0, 0, 0, 0, 0, mode, 1 if is_file else 2, 0, 0, 0, 4096, 0)


def serve(fuse, image, atom, commands):
    # To free memory the kernel may write to file systems: those on this disk would wait for it, and it for them.
    LIBC.prctl(57, 1, 0, 0, 0)  # PR_SET_IO_FLUSHER
    faulthandler.register(signal.SIGUSR1)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it ends with its parent
    # A request can be withdrawn after select() has told of it.
    os.set_blocking(fuse, False)
    Server(fuse, Medium(image, atom), multiprocessing.connection.Connection(commands)).run()


class ForgetfulDisk:
    """The disk `image`, as `path`, in its process. `atom`: bytes that are never torn."""

    def __init__(self, image, directory, atom):
        self.directory = directory
        self.path = f'{directory}/disk'
        os.makedirs(directory, exist_ok=True)
        fuse = os.open('/dev/fuse', os.O_RDWR)
        options = f'fd={fuse},rootmode=40000,user_id=0,group_id=0'
        if LIBC.mount(b'forgetful', directory.encode(), b'fuse', MOUNT_FLAGS, options.encode()) != 0:
            raise OSError(ctypes.get_errno(), 'cannot mount')
        self.commands, end = multiprocessing.connection.Pipe()
        self.process = subprocess.Popen([*DIES_WITH_PARENT, sys.executable, __file__, str(fuse), image, str(atom), str(end.fileno())],
                                        pass_fds=(fuse, end.fileno()), stdin=subprocess.DEVNULL)
        os.close(fuse)
        end.close()

    def tell(self, command, *arguments):
        try:
            self.commands.send((command, arguments))
            if not self.commands.poll(PATIENCE):
                raise AssertionError(f'the disk does not answer "{command}"')
            return self.commands.recv()
        except (EOFError, BrokenPipeError, ConnectionResetError) as error:
            raise AssertionError(f'the disk has ended ({self.process.poll()}) at "{command}"') from error

    def close(self):
        try:
            self.tell('end')
        finally:
            self.process.kill()
            self.process.wait(PATIENCE)


if __name__ == '__main__':
    serve(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
