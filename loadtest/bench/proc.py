"""Servers as processes: started, watched through /proc, ended. Only what was started here is ended."""
import os
import signal
import socket
import subprocess
import tempfile
import time

TICK = os.sysconf('SC_CLK_TCK')
START_LIMIT_S = 60

# The incumbent's own command line binds every interface; this binds loopback.
XPROF_LAUNCH = '''
import sys
from xprof import server
server._get_wildcard_address = lambda port: "127.0.0.1"
server.start_server(logdir=sys.argv[1], port=int(sys.argv[2]), grpc_port=int(sys.argv[3]),
                    hide_capture_profile_button=True)
'''


def free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]


def tree(pid):
    """The process and all its descendants."""
    kids = {}
    for entry in os.listdir('/proc'):
        if entry.isdigit():
            try:
                with open('/proc/%s/stat' % entry) as f:
                    parent = int(f.read().rsplit(')', 1)[1].split()[1])
            except (OSError, IndexError):
                continue
            kids.setdefault(parent, []).append(int(entry))
    out, todo = [], [pid]
    while todo:
        p = todo.pop()
        out.append(p)
        todo.extend(kids.get(p, []))
    return out


def threads_cpu(pid):
    """Seconds of the threads that live, to the nanosecond: stat counts in ticks of 10 ms."""
    total = 0
    try:
        for thread in os.listdir('/proc/%d/task' % pid):
            with open('/proc/%d/task/%s/schedstat' % (pid, thread)) as f:
                total += int(f.read().split()[0])
    except (OSError, IndexError, ValueError):
        pass
    return total / 1e9


class Usage:
    """CPU seconds and memory of a process tree at one moment."""

    def __init__(self, pid):
        self.cpu = 0.0
        self.rss = self.peak = 0
        for p in tree(pid):
            try:
                with open('/proc/%d/stat' % p) as f:
                    fields = f.read().rsplit(')', 1)[1].split()
                with open('/proc/%d/status' % p) as f:
                    status = f.read()
            except OSError:
                continue
            self.cpu += max((int(fields[11]) + int(fields[12])) / TICK, threads_cpu(p))
            for line in status.splitlines():
                if line.startswith('VmRSS:'):
                    self.rss += int(line.split()[1]) * 1024
                elif line.startswith('VmHWM:'):
                    self.peak += int(line.split()[1]) * 1024


class NoStart(RuntimeError):
    pass


class Cgroup:
    """A memory limit for the processes put into it, where the machine lets us make one."""

    def __init__(self, limit):
        self.path = None
        for base, name in (('/sys/fs/cgroup', 'memory.max'), ('/sys/fs/cgroup/memory', 'memory.limit_in_bytes')):
            path = os.path.join(base, 'xprofd-bench-%d' % os.getpid())
            try:
                os.mkdir(path)
            except OSError:
                continue
            if self.limit(path, name, limit):
                self.path = path
                return
            os.rmdir(path)

    @staticmethod
    def limit(path, name, limit):
        """Whether that folder is one, with such a limit: where the first version is mounted, /sys/fs/cgroup itself is none."""
        try:
            fd = os.open(os.path.join(path, name), os.O_WRONLY)
            with os.fdopen(fd, 'w') as f:
                f.write(str(limit))
            return os.path.exists(os.path.join(path, 'cgroup.procs'))
        except OSError:
            return False

    def read(self, *names):
        """The first of these that there is, as a number; -1: none."""
        for name in names:
            try:
                with open(os.path.join(self.path, name)) as f:
                    return int(f.read())
            except (OSError, TypeError, ValueError):
                pass
        return -1

    def add(self, pid):
        with open(os.path.join(self.path, 'cgroup.procs'), 'w') as f:
            f.write(str(pid))

    def close(self):
        if self.path:
            for _ in range(50):
                try:
                    os.rmdir(self.path)
                    return
                except OSError:
                    time.sleep(0.1)


class Kind:
    """One of the three servers: how it is started."""

    def __init__(self, name, program, cores):
        self.name, self.program, self.cores = name, program, cores
        self.ours = name == 'xprofd'

    def command(self, logdir, port, extra):
        if self.name == 'xprof':
            cmd = [self.program, '-c', XPROF_LAUNCH, logdir, str(port), str(free_port())]
        else:
            cmd = [self.program, '--logdir', logdir, '--port', str(port)] + list(extra)
        return (['taskset', '-c', self.cores] if self.cores else []) + cmd


class Server:
    """A running server; a context manager."""

    def __init__(self, kind, logdir, first_path, extra=(), cgroup=None, cores=None):
        from . import web
        self.kind, self.port = kind, free_port()
        self.log = tempfile.TemporaryFile()
        cmd = kind.command(logdir, self.port, extra)
        if cores and cmd[0] == 'taskset':
            cmd[2] = cores
        began = time.perf_counter()
        self.proc = subprocess.Popen(cmd, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
                                     start_new_session=True)
        self.pid = self.proc.pid
        try:
            if cgroup and cgroup.path:
                cgroup.add(self.pid)
            while web.get(self.port, first_path, timeout=30).status != 200:
                if self.proc.poll() is not None:
                    raise NoStart('%s ended: %s' % (kind.name, self.tail()))
                if time.perf_counter() - began > START_LIMIT_S:
                    raise NoStart('%s did not answer within %d s: %s' % (kind.name, START_LIMIT_S, self.tail()))
                time.sleep(0.0005)
        except BaseException:
            self.stop()
            raise
        self.start_s = time.perf_counter() - began

    def tail(self):
        self.log.flush()
        size = os.fstat(self.log.fileno()).st_size
        return os.pread(self.log.fileno(), 2000, max(0, size - 2000)).decode('utf8', 'replace')

    def usage(self):
        return Usage(self.pid)

    def alive(self):
        return self.proc.poll() is None

    def stop(self):
        members = tree(self.pid) if self.alive() else []
        for p in members:
            try:
                os.kill(p, signal.SIGTERM)
            except OSError:
                pass
        try:
            self.proc.wait(5)
        except subprocess.TimeoutExpired:
            for p in tree(self.pid):
                try:
                    os.kill(p, signal.SIGKILL)
                except OSError:
                    pass
            self.proc.wait()
        self.log.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
