"""Process 1 of a container that was made before its job is known: waits for the job, runs it, tells how it ended.

Rules: standard library only. Nothing is here before the job is but this program: no socket that it could be reached
at, no file, no name; and the person's folder, where it waits for a job on that. It speaks with whoever made the
container through the one connection that it made at its start, to a place that is gone since, or, with a folder,
through its standard streams; what it says there is this process's word alone, in frames (a letter, four bytes of
length, data): "R" it waits, "B" the job has begun, "O" and "E" its output, "X" how it ended. The job has pipes of its
own for its output; it can't signal process 1, nor reach its descriptors or memory, since this process can't be
dumped. When the job's first process ends everything else is killed, and only then is its end told. A Python program's
process says itself how it ends, since what it holds takes the kernel longer to take down than most programs run; one
that says so, and goes on, is killed with the rest. Process 1 stays until the connection ends, since what the control
group counted is gone with it; and when the connection ends, whatever runs here ends too.

What a job is likely to need is loaded while there is none, and the process that will be the job is forked: of a large
process that takes longer than all else. A job that comes before that is done doesn't wait for it.
"""

# The inner halves of three modules: the outer ones take long to load.
import _signal as signal
import _socket as socket
import _struct as struct
import ctypes
import gc
import os
import select
import sys
import time

CONTROL = "/goex/job/control"
_CHUNK = 65536
_LONGEST = 8 * 2**20
_DRAIN = 1.0  # seconds for what was written before the end to come out of the pipes
_SOON = 0.01  # seconds in which a job comes that this container was made for
_DUMPABLE = 4  # PR_SET_DUMPABLE
_PYTHON = "/usr/bin/python3"
_CALLS, _CODE = "/goex/bin/run_calls.py", "/goex/bin/run_code.py"
_LIKELY = ("json", "urllib.parse", "ssl", "email.parser", "http.client")


def main():
    prctl = ctypes.CDLL(None).prctl
    if prctl(_DUMPABLE, 0, 0, 0, 0) != 0:
        return 70
    streams = sys.argv[1:] == ["streams"]
    control = connected(streams)
    woken, wake = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # the kernel keeps from process 1 what it has no handler for
    control.sendall(frame(b"R", where() if streams else b""))
    out, err, end = (os.pipe2(os.O_CLOEXEC) for _ in range(3))
    ours = (out[1], err[1], end[1])
    programs, whole = ({}, False) if streams else load(control)  # a folder's programs have interpreters of their own
    ready = ahead(ours, programs, prctl) if whole else None
    told = receive(control)
    if told is None:
        return 0
    job = read(told)
    until = time.monotonic() + job["seconds"]
    try:
        control.sendall(frame(b"B"))  # before it begins: what wasn't told of has never run, and may run elsewhere
        if streams and not control.recv(1):  # between us is the engine: that it was told of is heard back
            return 1
    except OSError:
        return 1
    first = begun(ready, told)
    if first is None:
        first = os.fork()
        if first == 0:
            try:
                apart(ours)
                begin(job, ours, programs, prctl)
            finally:
                os._exit(1)
    for descriptor in ours:
        os.close(descriptor)
    try:
        status, late = follow(control, first, {out[0]: b"O", err[0]: b"E"}, (woken, end[0]), until)
        if streams:
            wait_for_all()
        code = os.waitstatus_to_exitcode(status)
        ended = b'{"code": %d, "late": %s}' % (128 - code if code < 0 else code, b"true" if late else b"false")
        control.sendall(frame(b"X", ended))
        while control.recv(_CHUNK):
            pass
    except OSError:  # nobody listens any more: with process 1 the kernel ends everything here
        return 1
    return 0


def connected(streams):
    """The connection to whoever made this container."""
    if streams:
        return Line(0, 1)
    control = socket.socket(socket.AF_UNIX)
    control.connect(CONTROL)
    return control


def where():
    """The folder that this container has, by its device and inode."""
    found = os.stat(".")
    return b"%d:%d" % (found.st_dev, found.st_ino)


class Line:
    """Two descriptors, to read and to write, spoken with as with a socket."""

    def __init__(self, reading, writing):
        self.reading, self.writing = reading, writing

    def fileno(self):
        return self.reading

    def recv(self, size):
        return os.read(self.reading, size)

    def sendall(self, data):
        while data:
            data = data[os.write(self.writing, data) :]


def load(control):
    """Load what jobs are likely to need, until one is there. Returns the compiled programs by their path, and whether
    so much was loaded, all of it, that forking takes long: where it doesn't, a second process would only take room."""
    programs = {}
    whole = True

    def steps():
        yield
        for path in (_CALLS, _CODE):
            yield programs.setdefault(path, compiled(path))
        names = {"__name__": "run_code", "__file__": _CODE}
        exec(programs[_CODE], names)
        prepared = names["prepare"]() if os.path.exists(names["PRELOAD"]) else iter(())
        yield next(prepared, None)
        for name in _LIKELY:
            yield __import__(name)
        yield from prepared
        yield gc.collect()

    wait = _SOON
    for _ in steps():
        if select.select((control,), (), (), wait)[0]:
            whole = False
            break
        wait = 0
    gc.freeze()  # pages that no collection touches stay shared with the job
    return programs, whole and "shim" in sys.modules


def compiled(path):
    with open(path, encoding="utf-8") as file:
        return compile(file.read(), path, "exec")


def ahead(pipes, programs, prctl):
    """Fork what will be the job, which waits to be told it. Returns its number, and where it is told."""
    ours, theirs = socket.socketpair()
    child = os.fork()
    if child == 0:
        try:
            ours.close()
            apart(pipes)
            rehearse()
            told = receive(theirs)
            if told is not None:
                begin(read(told), pipes, programs, prctl)
        finally:
            os._exit(1)
    theirs.close()
    return child, ours


def rehearse():
    """Do once what a job does first: the pages that this changes are copied now, and not when it begins."""
    import json

    os.environ.update({f"NUMBER_{number}": "x" * 20 for number in range(40)})
    os.environ.clear()
    json.loads('{"a": ["b", 1, {"c": null}]}')
    compiled(_CODE)


def begun(ready, told):
    """Tell the process that waits for it its job. Returns its number; None where there is none any more."""
    if ready is None:
        return None
    child, place = ready
    try:
        place.sendall(struct.pack(">I", len(told)) + told)
        return child
    except OSError:  # it has been ended
        return None
    finally:
        place.close()


def apart(pipes):
    """Be a process of its own: in a session of its own, with the job's output as its own."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    os.setsid()
    nothing = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
    for source, target in ((nothing, 0), (pipes[0], 1), (pipes[1], 2)):
        os.dup2(source, target)


def begin(job, pipes, programs, prctl):
    """Become the job. Doesn't return."""
    code = 127
    try:
        ending = Ending(pipes[2])
        let_go({pipes[2], *channel(job["argv"])})
        prctl(_DUMPABLE, 1, 0, 0, 0)
        os.environ.clear()
        os.environ.update(job["env"])
        argv = job["argv"]
        if is_python(argv):
            signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # as the interpreter has it
            code = run(argv[3:], programs)
            ending.say(code)
        else:
            os.execvp(argv[0], argv)
    except OSError as error:
        os.write(2, f"{job['argv'][0]}: {error.strerror}\n".encode(errors="replace"))
        code = 126 if isinstance(error, PermissionError) else 127
    finally:
        os._exit(code)


def channel(argv):
    """The descriptor by which a program for services reaches its proxy's process, if that was made."""
    shim = sys.modules.get("shim")
    wanted = is_python(argv) and argv[3] == _CODE and shim is not None and shim.ready is not None
    return (shim.ready.fileno(),) if wanted else ()


class Ending:
    """Where the job's own process says how it ends."""

    def __init__(self, descriptor):
        self.descriptor, self.process, self.place = descriptor, os.getpid(), os.fstat(descriptor)

    def say(self, code):
        """A process that the program forked says nothing, and nothing is said where the program put another file."""
        try:
            if os.getpid() == self.process and os.path.samestat(os.fstat(self.descriptor), self.place):
                os.write(self.descriptor, bytes((code,)))
        except OSError:  # it was closed: the end itself tells
            pass


def let_go(kept):
    """Close whatever is open besides."""
    low = 3
    for descriptor in sorted(kept):
        os.closerange(low, descriptor)
        low = descriptor + 1
    os.closerange(low, 64)


def is_python(argv):
    """Whether the job is a file for the interpreter that runs here already, in the same mode."""
    return len(argv) > 3 and argv[:3] == [_PYTHON, "-I", "-S"] and argv[3].startswith(("/goex/bin/", "/goex/job/"))


def run(argv, programs):
    """Run a Python file as the interpreter would. Returns its exit code."""
    sys.argv[:] = argv
    code = 0
    try:
        program = programs.get(argv[0]) or compiled(argv[0])
        exec(program, {"__name__": "__main__", "__file__": argv[0], "__builtins__": __builtins__})
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        if end.code is not None and not isinstance(end.code, int):
            print(end.code, file=sys.stderr)
    except BaseException:  # the job's own, told as the interpreter tells it
        import traceback

        traceback.print_exc()
        code = 1
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            code = code or 120
    return code & 0xFF


def follow(control, first, pipes, told, until):
    """Hand the output on until the first process has ended and nothing else lives. Returns its status, and whether
    it was ended because its time was over. `told` are the descriptors that tell of an ended child, and by which the
    first process says that it ends. Raises OSError when nobody listens any more."""
    woken, ending = told
    poll = select.poll()
    for descriptor in (control, woken, ending, *pipes):
        poll.register(descriptor, select.POLLIN)
    status, late, said, deadline = None, False, False, until
    while pipes or status is None:
        left = deadline - time.monotonic()
        if left <= 0:
            if status is not None:
                break  # somebody holds a pipe whom a signal doesn't reach any more
            late, deadline = True, time.monotonic() + _DRAIN
            kill_all()
        found = poll.poll(0 if said else max(left, 0.0) * 1000)
        if said and not found:
            break  # what was written before has been read
        for descriptor, _ in found:
            if descriptor == control.fileno():
                raise ConnectionResetError
            if descriptor == woken:
                os.read(woken, _CHUNK)
            elif descriptor == ending:
                poll.unregister(ending)
                code = os.read(ending, 1)
                if code and status is None:
                    status, said, deadline = code[0] << 8, True, time.monotonic() + _DRAIN
                    kill_all()
            elif data := os.read(descriptor, _CHUNK):
                control.sendall(frame(pipes[descriptor], data))
            else:
                poll.unregister(descriptor)
                del pipes[descriptor]
                os.close(descriptor)
        ended = reap(first)
        if ended is not None and status is None:
            status, deadline = ended, time.monotonic() + _DRAIN
            kill_all()
    return status if status is not None else signal.SIGKILL, late


def reap(first):
    """Take the end of every child that has ended; the status of the first process if it is among them."""
    status = None
    while True:
        try:
            pid, ended = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return status
        if pid == 0:
            return status
        if pid == first:
            status = ended


def kill_all():
    try:  # noqa: SIM105 # contextlib takes long to load, too
        os.kill(-1, signal.SIGKILL)  # everybody but this process
    except ProcessLookupError:
        pass


def wait_for_all():
    """Until nobody is left: whoever was killed in the middle of a write to the folder may still finish it."""
    try:
        while True:
            os.waitpid(-1, 0)
    except ChildProcessError:
        pass


def receive(control):
    """What is told of the job; None when whoever made this container has gone."""
    head = exactly(control, 4)
    if head is None:
        return None
    (size,) = struct.unpack(">I", head)
    return exactly(control, size) if size <= _LONGEST else None


def read(told):
    seconds, count, *words = map(os.fsdecode, told.split(b"\0"))
    argv, env = words[: int(count)], words[int(count) :]
    return {"seconds": float(seconds), "argv": argv, "env": dict(each.split("=", 1) for each in env)}


def exactly(control, size):
    data = b""
    while len(data) < size:
        part = control.recv(size - len(data))
        if not part:
            return None
        data += part
    return data


def frame(kind, data=b""):
    return kind + struct.pack(">I", len(data)) + data


if __name__ == "__main__":
    os._exit(main())
