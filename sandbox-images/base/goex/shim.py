"""The container's way out, offered as an HTTP proxy on loopback. Standard library only.

Bytes are pumped between 127.0.0.1 and the action's socket, unread: every decision is made on the other side. Use it
as a module (`start()` serves from a thread), or as a program: `shim.py [--port N] -- COMMAND…` serves from a child
process and becomes COMMAND, with the variables that make common clients use the proxy and trust its certificates.
"""

import contextlib
import os
import socket
import sys
import threading

SOCKET = "/goex/gateway/gw.sock"
CA = "/goex/job/ca.pem"
PORT = 3128
_CHUNK = 65536
_MOST = 8  # the other side takes no more connections


def start(port=0, path=SOCKET):
    """Serve from a daemon thread. Returns the port that was bound (any free one when `port` is 0)."""
    listener = _listen(port)
    threading.Thread(target=serve, args=(listener, path), daemon=True).start()
    return listener.getsockname()[1]


def environment(port, ca=CA):
    """Variables for curl, Python (urllib, requests, httpx), Node, Go and git."""
    made = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), f"http://127.0.0.1:{port}")
    made.update({"no_proxy": "", "NO_PROXY": "", "NODE_USE_ENV_PROXY": "1"})
    names = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO")
    made.update(dict.fromkeys(names, ca))
    return made


def serve(listener, path=SOCKET, alive=lambda: True):
    """Accept and pump until `alive` says no."""
    listener.settimeout(0.5)
    slots = threading.BoundedSemaphore(_MOST)
    while alive():
        try:
            inner, _ = listener.accept()
        except TimeoutError:
            continue
        except OSError:
            return
        inner.settimeout(None)
        slots.acquire()
        threading.Thread(target=_connection, args=(inner, path, slots), daemon=True).start()


def _connection(inner, path, slots):
    outer = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        outer.connect(path)
        inner.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        back = threading.Thread(target=_pump, args=(outer, inner), daemon=True)
        back.start()
        _pump(inner, outer)
        back.join()
    except OSError:
        _say_unreachable(inner)
    finally:
        inner.close()
        outer.close()
        slots.release()


def _pump(source, sink):
    """Copy until the end of `source`, and hand that end on."""
    try:
        while True:
            data = source.recv(_CHUNK)
            if not data:
                break
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


def _say_unreachable(inner):
    body = b'{"error":"goex-gateway","reason":"the gateway can\'t be reached"}'
    head = b"HTTP/1.1 502 GoEx\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: %d\r\n\r\n"
    with contextlib.suppress(OSError):
        inner.sendall(head % len(body) + body)


def _listen(port):
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(64)
    return listener


def main(argv):
    """`[--port N] [--socket PATH] [--ca PATH] -- COMMAND…`. Doesn't return when all is well."""
    options = {"--port": str(PORT), "--socket": SOCKET, "--ca": CA}
    while argv and argv[0] in options and len(argv) > 1:
        options[argv[0]] = argv[1]
        argv = argv[2:]
    if len(argv) < 2 or argv[0] != "--":
        sys.stderr.write("usage: shim.py [--port N] [--socket PATH] [--ca PATH] -- COMMAND...\n")
        return 2
    listener = _listen(int(options["--port"]))
    port = listener.getsockname()[1]
    command = os.getpid()
    if os.fork() == 0:
        # The command keeps its own pid; this child ends when it finds itself adopted by another.
        serve(listener, options["--socket"], alive=lambda: os.getppid() == command)
        os._exit(0)
    listener.close()
    os.environ.update(environment(port, options["--ca"]))
    try:
        os.execvp(argv[1], argv[1:])
    except OSError as error:
        sys.stderr.write(f"shim: {argv[1]}: {error.strerror}\n")
        return 127


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
