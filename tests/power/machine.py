"""A machine whose power is cut: what runs on a file system on a disk that forgets, in a process namespace of its own. The kernel goes on, so
what it holds in memory is lost by taking the disk away from it."""

import contextlib
import ctypes
import glob
import os
import pwd
import shutil
import signal
import subprocess
import time

from forgetful_disk import DIES_WITH_PARENT, PATIENCE, ForgetfulDisk

SIZE = 512 * 1024 * 1024
INITDB = ('-U', 'postgres', '-E', 'UTF8', '--locale=C', '--auth=trust', '--no-sync', '--data-checksums')
MAKE = {'ext4': ('mkfs.ext4', '-q', '-E', 'nodiscard,lazy_itable_init=0,lazy_journal_init=0'), 'xfs': ('mkfs.xfs', '-q', '-K')}
CHECK = {'ext4': ('e2fsck', '-fn'), 'xfs': ('xfs_repair', '-n')}
# xfs logs parts of a block and cannot repair one that is torn, so its sectors must be whole.
ATOM = {'ext4': 512, 'xfs': 4096}


class NotRun(Exception):
    """What this machine lacks."""


def require_means(file_system):
    if os.geteuid() != 0:
        raise NotRun('only root mounts a disk')
    for device in ('/dev/fuse', '/dev/loop-control'):
        try:
            os.close(os.open(device, os.O_RDWR))
        except OSError as error:
            raise NotRun(f'{device}: {error.strerror}') from error
    for program in ('losetup', 'unshare', 'nsenter', 'setpriv', MAKE[file_system][0]):
        if shutil.which(program) is None:
            raise NotRun(f'{program} is not installed')


def leave_mount_namespace():
    """Another process that clones this one would keep each file system mounted, and write to it when its power is back. /dev/shm is its own, as
    killed servers leave shared memory there: nothing of it stays, however this process ends."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(0x20000) != 0 or libc.mount(b'none', b'/', None, 0x4000 | 0x40000, None) != 0 or libc.mount(
            b'none', b'/dev/shm', b'tmpfs', 0, None) != 0:
        raise NotRun(f'no mount namespace: {os.strerror(ctypes.get_errno())}')


def run(*command):
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=PATIENCE)
    except subprocess.TimeoutExpired as error:
        raise AssertionError(f'{" ".join(command)}: does not end: {error.stdout}') from error
    if done.returncode != 0:
        raise AssertionError(f'{" ".join(command)}: {done.stdout}')
    return done.stdout


def eventually(condition, patience=PATIENCE):
    end = time.monotonic() + patience
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def finish(process, patience=PATIENCE):
    """The exit status of a process."""
    try:
        return process.wait(patience)
    except subprocess.TimeoutExpired as error:
        raise AssertionError(f'{" ".join(process.args)}: does not end') from error


class Machine:
    """The mount point is `root`; sockets and logs are in `directory`, off the disk."""

    def __init__(self, directory, file_system='ext4', mount_options='', atom=None):
        self.directory, self.file_system, self.mount_options = directory, file_system, mount_options
        self.root = f'{directory}/root'
        self.log = f'{directory}/server.log'
        self.image = f'{directory}/image'
        self.loop = None
        self.first = None  # the first process of the namespace
        self.bin = run('pg_config', '--bindir').strip()
        self.owner = pwd.getpwnam('postgres' if self._has_user('postgres') else 'nobody')
        os.makedirs(self.root)
        os.chmod(directory, 0o755)
        with open(self.image, 'wb') as image:
            image.truncate(SIZE)
        self.disk = ForgetfulDisk(self.image, f'{directory}/fuse', atom or ATOM[file_system])

    @staticmethod
    def _has_user(name):
        try:
            pwd.getpwnam(name)
        except KeyError:
            return False
        return True

    def make(self):
        """A file system, with a cluster and a directory for each other thing."""
        self._attach()
        run(*MAKE[self.file_system], self.loop)
        self._mount()
        os.mkdir(f'{self.root}/data')
        os.chown(f'{self.root}/data', self.owner.pw_uid, self.owner.pw_gid)
        os.makedirs(f'{self.directory}/sockets')
        os.chmod(f'{self.directory}/sockets', 0o777)
        os.mkdir(f'{self.root}/spool')
        os.chmod(f'{self.root}/spool', 0o3777)
        run(*self.as_owner(), f'{self.bin}/initdb', *INITDB, '-D', f'{self.root}/data')
        with open(f'{self.root}/data/postgresql.conf', 'a', encoding='ascii') as file:
            file.write(f"listen_addresses = ''\nunix_socket_directories = '{self.directory}/sockets'\nshared_buffers = 32MB\nmax_wal_size = 64MB\n")
        run('sync', '-f', self.root)

    def as_owner(self):
        return ('setpriv', f'--reuid={self.owner.pw_uid}', f'--regid={self.owner.pw_gid}', '--clear-groups', 'env', 'LC_ALL=C')

    def _attach(self):
        self.loop = run('losetup', '--find', '--show', self.disk.path).strip()
        # A write waits for the disk, and not for what the kernel takes for a fair share of it.
        with contextlib.suppress(FileNotFoundError), open(f'/sys/block/{os.path.basename(self.loop)}/queue/wbt_lat_usec', 'w', encoding='ascii') as file:
            file.write('0')

    def _mount(self):
        options = ('-o', self.mount_options) if self.mount_options else ()
        run('mount', '-t', self.file_system, *options, self.loop, self.root)
        # It goes with the mount, however this process ends.
        run('losetup', '--detach', self.loop)

    def power_on(self):
        if self.loop is None:
            self.disk.tell('power')
            self._attach()
            self._mount()
        self.first = subprocess.Popen([*DIES_WITH_PARENT, 'unshare', '--pid', '--fork', '--kill-child', 'sleep', 'infinity'], stderr=subprocess.DEVNULL)
        if not eventually(self._has_namespace):
            raise AssertionError('no namespace')

    def _has_namespace(self):
        return bool(self._children())

    def _children(self):
        with open(f'/proc/{self.first.pid}/task/{self.first.pid}/children', encoding='ascii') as file:
            return file.read().split()

    def start(self, *command, as_owner=False, **options):
        """A process of the machine, which has to have power."""
        user = self.as_owner() if as_owner else ()
        children = self._children()
        if not children:
            raise ProcessLookupError('the power is off')
        return subprocess.Popen([*DIES_WITH_PARENT, 'nsenter', '--target', children[0], '--pid', '--', *user, *command], stdin=subprocess.DEVNULL, **options)

    def start_server(self, *settings):
        # Left by the last one, as after each cut; Debian's scripts remove it likewise.
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f'{self.root}/data/postmaster.pid')
        log = open(self.log, 'ab')
        options = [part for setting in settings for part in ('-c', setting)]
        return self.start(f'{self.bin}/postgres', '-D', f'{self.root}/data', *options, as_owner=True, stdout=log, stderr=log, cwd='/')

    def is_up(self):
        return subprocess.run([f'{self.bin}/pg_isready', '-q', '-h', f'{self.directory}/sockets', '-U', 'postgres', '-d', 'postgres'], check=False, timeout=PATIENCE).returncode == 0

    def processes(self):
        if self.first is None:
            return []
        try:
            inside = os.readlink(f'/proc/{self._children()[0]}/ns/pid')
        except (OSError, IndexError):
            return []
        found = []
        for path in glob.glob('/proc/[0-9]*'):
            try:
                if os.readlink(f'{path}/ns/pid') == inside:
                    found.append(int(path[6:]))
            except OSError:
                continue
        return found

    def _kill_all(self):
        """What runs here runs no more: a process that waits for the disk ends when that answers."""
        processes = self.processes()
        for _ in range(2):  # and what one of them started meanwhile
            for process in processes:
                try:
                    os.kill(process, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            processes = self.processes()
        self.first.kill()

    def cut(self, loss, seed):
        """Returns how many sectors were lost."""
        self.disk.tell('freeze')
        self._kill_all()
        lost = self.disk.tell('cut', loss, seed)
        finish(self.first)
        self._unmount()
        self.loop = None
        return lost

    def kill(self):
        """All processes end, and the power stays: what the kernel has is written."""
        self._kill_all()
        finish(self.first)
        self._unmount()
        self.loop = None

    def _unmount(self):
        """Once its last process has ended."""
        if not eventually(lambda: subprocess.run(['umount', self.root], stderr=subprocess.DEVNULL, check=False, timeout=PATIENCE).returncode == 0):
            raise AssertionError('cannot unmount')
        if not eventually(lambda: not run('losetup', '--list', '--noheadings', '--associated', self.disk.path)):
            raise AssertionError(f'{self.loop} is held by somebody')

    def break_file_system(self):
        """ext4 meets an error, as by its own test hook, and does what its mount options say."""
        with open(f'/sys/fs/ext4/{os.path.basename(self.loop)}/trigger_fs_error', 'w', encoding='ascii') as file:
            file.write('1')

    @contextlib.contextmanager
    def full(self):
        """For all but root."""
        ballast = f'{self.root}/ballast'
        room = os.statvfs(self.root)
        run('fallocate', '-l', str(room.f_bavail * room.f_frsize), ballast)
        yield
        os.unlink(ballast)

    def check(self):
        """Of a machine that was shut down: the file system, and every page of the database."""
        self._kill_all()
        finish(self.first)
        self._unmount()
        self._attach()
        run(*CHECK[self.file_system], self.loop)
        self._mount()
        run(*self.as_owner(), f'{self.bin}/pg_checksums', '--check', '-D', f'{self.root}/data')

    def unmount_all(self):
        for place in (self.root, self.disk.directory):
            subprocess.run(['umount', '--lazy', place], stderr=subprocess.DEVNULL, check=False, timeout=PATIENCE)

    def close(self):
        if self.first is not None and self.first.poll() is None:
            self._kill_all()
            finish(self.first)
        self.unmount_all()
        self.disk.close()
