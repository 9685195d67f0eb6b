"""The container's way out, offered as an HTTP proxy on loopback, and to what takes no proxy (`direct`). Standard
library only.

Bytes are pumped between 127.0.0.1 and the action's socket, unread: every decision is made on the other side. Rules: one
process and one loop for all connections, since threads count against the job's limit; what one end doesn't take isn't
read from the other, so memory stays what it is; the end of one direction is passed on as just that. It ends with the
process that started it. That process can be made before there is a job (`prepare`): it has no socket that it could be
reached at until the job hands it one.
"""

import _signal as signal
import contextlib
import os
import select
import socket
import sys
from collections import deque

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
try:
    import direct
finally:
    sys.path.remove(HERE)

SOCKET = "/goex/gateway/gw.sock"
_CHUNK = 2**17
_TURNS = 8  # chunks of one connection before the others get theirs
_MOST = 64  # connections that the other side takes at a time; more wait in the backlog
_AGAIN = 0.01  # seconds before a socket whose backlog is full is tried again
_LINGERING = 128
_READ, _WRITE, _BROKEN, _GONE = select.EPOLLIN, select.EPOLLOUT, select.EPOLLERR, select.EPOLLHUP


ready = None  # the connection to the process that `prepare` made


def prepare(path=SOCKET):
    """Make the process that will serve, while there is time: a child of this one, and as long as this one lives."""
    global ready
    user = os.getpid()
    watched = _watch(user)
    ready, given = socket.socketpair()
    if os.fork() == 0:
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _let_go({given.fileno(), watched})
            with contextlib.suppress(OSError):  # its end, at that of the job, then interrupts nobody who tells of it
                os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
            _, descriptors, _, _ = socket.recv_fds(given, 1, 3)
            given.close()
            if descriptors:
                Shim(*(socket.socket(fileno=one) for one in descriptors), path=path).serve(user, watched)
        finally:
            os._exit(0)
    given.close()
    if watched is not None:
        os.close(watched)


def start(port=0, path=SOCKET, everywhere=False):
    """Serve, from the process that was prepared or else from one that isn't this one's child, lest this one wait for it
    among its own. Returns the port that was bound (any free one when `port` is 0). `everywhere`: also to what connects
    without the proxy; for a network namespace of the job's own alone."""
    listener = _listen(port)
    bound = listener.getsockname()[1]
    listeners = (listener, *(direct.sockets() if everywhere else ()))
    if not _handed(listeners):
        _start(listeners, path)
    for one in listeners:
        one.close()
    return bound


def _handed(listeners):
    """Hand the listeners to the process that was prepared. Returns whether there is one."""
    if ready is None:
        return False
    with ready, contextlib.suppress(OSError):  # it has been ended: another one will do
        return socket.send_fds(ready, [b"."], [one.fileno() for one in listeners]) == 1
    return False


def _start(listeners, path):
    user = os.getpid()
    watched = _watch(user)
    child = os.fork()
    if child == 0:
        try:
            if os.fork() == 0:
                _let_go({*(one.fileno() for one in listeners), watched})
                Shim(*listeners, path=path).serve(user, watched)
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    if watched is not None:
        os.close(watched)


def _let_go(kept):
    """Close everything else that is open."""
    nothing = os.open("/dev/null", os.O_RDWR)
    for descriptor in range(3):
        os.dup2(nothing, descriptor)
    low = 3  # not by /proc: it is closed to a process that can't be dumped
    for descriptor in sorted(kept - {None}):
        os.closerange(low, descriptor)
        low = descriptor + 1
    os.closerange(low, os.sysconf("SC_OPEN_MAX"))


class Way:
    """One direction of a connection: what was read from `source` and `sink` hasn't taken yet."""

    __slots__ = ("dead", "done", "left", "sink", "source")

    def __init__(self, source, sink):
        self.source, self.sink = source, sink
        self.left = b""
        self.done = False  # the source's end was read
        self.dead = False  # nothing reaches the sink any more; what still comes is dropped


class Shim:
    """The loop. `serve` returns when its user has ended."""

    def __init__(self, listener, questions=None, direct_listener=None, path=SOCKET):
        self.listener, self.path = listener, path
        self.questions, self.direct = questions, direct_listener
        self.names = direct.Names()
        self.poll = select.epoll()
        self.pairs = {}  # descriptor -> (the way from the container out, the way back)
        self.masks = {}
        self.waiting = deque()  # accepted (and the name that is meant), but the other side's backlog is full
        self.asking = {}  # descriptor of the other side -> a connection that it has yet to let through
        self.lingering = {}  # answered, and still talking: read and dropped, lest the answer be lost by a reset
        self.buffer = memoryview(bytearray(_CHUNK))
        self.accepting = False
        listener.setblocking(False)

    def serve(self, user, watched):
        if watched is not None:
            self.poll.register(watched, _READ)
        if self.questions is not None:
            self.poll.register(self.questions.fileno(), _READ)
        self.accept_more()
        while watched is not None or _lives(user):
            pause = _AGAIN if self.waiting else -1 if watched is not None else 0.2
            for descriptor, event in self.poll.poll(pause):
                if descriptor == watched:
                    return
                if descriptor == self.listener.fileno():
                    self.accept()
                elif self.direct is not None and descriptor == self.direct.fileno():
                    self.accept_direct()
                elif self.questions is not None and descriptor == self.questions.fileno():
                    self.tell()
                elif descriptor in self.asking:
                    self.hear(descriptor)
                elif descriptor in self.pairs:
                    self.turn(descriptor, event)
                elif descriptor in self.lingering:
                    self.drop(descriptor)
            for _ in range(len(self.waiting)):
                self.connect(*self.waiting.popleft())

    def accept_more(self):
        wanted = len(self.pairs) // 2 + len(self.waiting) + len(self.asking) < _MOST
        if wanted != self.accepting:
            for one in (self.listener, self.direct):
                if one is not None:
                    (self.poll.register if wanted else self.poll.unregister)(one.fileno())
            self.accepting = wanted

    def accept(self):
        with contextlib.suppress(OSError):  # it has gone already
            inner, _ = self.listener.accept()
            inner.setblocking(False)
            inner.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.connect(inner)
        self.accept_more()

    def accept_direct(self):
        with contextlib.suppress(OSError):
            inner, _ = self.direct.accept()
            inner.setblocking(False)
            inner.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            name = self.names.name_of(inner.getsockname()[0])
            if name is None:
                inner.close()
            else:
                self.connect(inner, name)
        self.accept_more()

    def tell(self):
        with contextlib.suppress(OSError):
            question, asker = self.questions.recvfrom(512)
            answer = self.names.answer(question)
            if answer is not None:
                self.questions.sendto(answer, asker)

    def hear(self, descriptor):
        one = self.asking[descriptor]
        try:
            rest = one.heard()
            if rest is None:
                return
            if rest:
                one.inner.send(rest)
        except OSError:
            rest = None
        self.poll.unregister(descriptor)
        del self.asking[descriptor]
        if rest is None:
            one.inner.close()
            one.outer.close()
        else:
            self.join(one.inner, one.outer)
        self.accept_more()

    def connect(self, inner, name=None):
        """Connect what was accepted with the other side; `name`: to that host, which the other side is asked for."""
        outer = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        outer.setblocking(False)
        try:
            outer.connect(self.path)
        except BlockingIOError:
            outer.close()
            self.waiting.append((inner, name))
            return
        except OSError:
            outer.close()
            outer = _unreachable()
        if name is None:
            self.join(inner, outer)
            return
        try:
            self.asking[outer.fileno()] = direct.Asking(inner, outer, name)
            self.poll.register(outer.fileno(), _READ)
        except OSError:
            self.asking.pop(outer.fileno(), None)
            inner.close()
            outer.close()

    def join(self, inner, outer):
        there, back = Way(inner, outer), Way(outer, inner)
        self.pairs[inner.fileno()] = self.pairs[outer.fileno()] = there, back
        self.watch(there, back)

    def turn(self, descriptor, event):
        there, back = self.pairs[descriptor]
        fed, taken = (there, back) if there.source.fileno() == descriptor else (back, there)
        try:
            if event & _BROKEN and fed is there:
                raise ConnectionResetError
            if taken.left:
                self.push(taken)
            self.pull(fed)
        except OSError:
            self.close(there)  # the program broke off, and the other side hears its end
            return
        if event & _GONE and fed.done:
            taken.dead, taken.left = True, b""
        if fed.done and taken.done and not fed.left and not taken.left:
            self.close(there)
        elif back.dead and there.done and not there.left:
            self.close(there)  # the program has gone, however that was noticed: nobody reads what would still come
        elif there.dead and back.done and not back.left:
            self.linger(there)
        else:
            self.watch(there, back)

    def pull(self, way):
        """Read what there is, as long as it is taken."""
        for _ in range(_TURNS):
            if way.left or way.done:
                return
            try:
                size = way.source.recv_into(self.buffer)
            except BlockingIOError:
                return
            except ConnectionResetError:
                if way.source.family != socket.AF_UNIX:
                    raise
                size = 0  # it hung up without having read all; what it said before that has been read
            if size:
                self.hand_on(way, self.buffer[:size])
            else:
                way.done = True
                self.end(way)

    def push(self, way):
        left, way.left = memoryview(way.left), b""
        self.hand_on(way, left)
        if way.done and not way.left:
            self.end(way)

    def hand_on(self, way, data):
        if way.dead:
            return
        try:
            sent = way.sink.send(data)
        except BlockingIOError:
            sent = 0
        except OSError:
            # It doesn't listen any more, but it may have answered: its own end decides.
            way.dead = True
            return
        if sent < len(data):
            way.left = bytes(data[sent:])

    def end(self, way):
        if not way.left and not way.dead:
            with contextlib.suppress(OSError):
                way.sink.shutdown(socket.SHUT_WR)

    def watch(self, there, back):
        for fed, taken in ((there, back), (back, there)):
            mask = (0 if fed.left or fed.done else _READ) | (_WRITE if taken.left else 0)
            if not mask and (not fed.done or taken.dead or taken.done):
                mask = None  # left out: its hanging up would be told again and again, and nothing done about it
            self.wait_for(fed.source.fileno(), mask)

    def wait_for(self, descriptor, mask):
        before = self.masks.pop(descriptor, None)
        if mask is not None:
            self.masks[descriptor] = mask
        if mask == before:
            return
        if mask is None:
            self.poll.unregister(descriptor)
        elif before is None:
            self.poll.register(descriptor, mask)
        else:
            self.poll.modify(descriptor, mask)

    def close(self, way):
        for end in (way.source, way.sink):
            self.forget(end)
            end.close()
        self.accept_more()

    def forget(self, end):
        self.wait_for(end.fileno(), None)
        del self.pairs[end.fileno()]

    def linger(self, there):
        inner, outer = there.source, there.sink
        self.forget(inner)
        self.forget(outer)
        outer.close()
        self.lingering[inner.fileno()] = inner
        self.wait_for(inner.fileno(), _READ)
        if len(self.lingering) > _LINGERING:
            self.drop(next(iter(self.lingering)), enough=True)
        self.accept_more()

    def drop(self, descriptor, enough=False):
        try:
            if not enough and self.lingering[descriptor].recv_into(self.buffer):
                return
        except BlockingIOError:
            return
        except OSError:
            pass
        self.wait_for(descriptor, None)
        self.lingering.pop(descriptor).close()


def _watch(pid):
    """A descriptor that can be read when the process has ended; None where the kernel has no such thing."""
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None


def _lives(pid):
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


def _unreachable():
    """The other end of a connection that says so, and hangs up."""
    body = b'{"error":"goex-gateway","reason":"the gateway can\'t be reached"}'
    head = b"HTTP/1.1 502 GoEx\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: %d\r\n\r\n"
    ours, theirs = socket.socketpair()
    theirs.sendall(head % len(body) + body)
    theirs.close()
    ours.setblocking(False)
    return ours


def _listen(port):
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(128)
    return listener
