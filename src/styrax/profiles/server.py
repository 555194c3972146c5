"""A server that others ask to record what this process does.

It answers HTTP: `GET /start` begins a recording and gives its number, `GET /stop?recording=1` ends it and gives the
trace as an XSpace message. TensorBoard's own protocol is another.
"""

from __future__ import annotations

import socket
import threading
import urllib.parse
import urllib.request
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from .recordings import Recording, active, others
from .spaces import serialize


class _Listener(ThreadingHTTPServer):
    """Listens; `recordings` are those that were begun and have not ended."""

    daemon_threads = True

    def __init__(self, port: int):
        super().__init__(("localhost", port), _Handler)
        self.recordings: dict[str, Recording] = {}


class ProfilerServer:
    """A running server; `port` is where it listens."""

    def __init__(self, port: int):
        self._server = _Listener(port)
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, name="profiler", daemon=True).start()

    def stop(self) -> None:
        """Ends the server."""
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    """Answers one request."""

    server: _Listener

    def do_GET(self) -> None:
        """Begins or ends a recording."""
        url = urllib.parse.urlparse(self.path)
        if url.path == "/start":
            recording = Recording()
            body = str(id(recording)).encode()
            self.server.recordings[body.decode()] = recording
            active.append(recording)
        elif url.path == "/stop":
            number = urllib.parse.parse_qs(url.query).get("recording", [""])[0]
            ended = self.server.recordings.pop(number, None)
            if ended is None:
                self.send_error(404)
                return
            active.remove(ended)
            body = serialize(ended.spans, socket.gethostname())
        else:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Requests are no news."""


_running: list[ProfilerServer] = []


def start_server(port: int, requires_backend: bool = True) -> ProfilerServer:
    """Starts the server of this process.

    Args:
      port: where it listens, on this machine; 0 for a free one.
      requires_backend: ignored: no backend has to be there.

    Raises:
      ValueError: it runs already.
    """
    if _running:
        raise ValueError("Only one profiler server can be active at a time.")
    _running.append(ProfilerServer(port))
    return _running[0]


def stop_server() -> None:
    """Ends the server of this process. ValueError where none runs."""
    if not _running:
        raise ValueError("No active profiler server.")
    _running.pop().stop()


def register_subprocess(pid: int, port: int) -> Callable[[], None]:
    """Has the traces of this process record another process of this machine, too.

    Args:
      pid: the process.
      port: the port of its server.

    Returns:
      A function that ends this.

    Raises:
      RuntimeError: it is registered already, or no server answers.
    """
    if pid in others:
        raise RuntimeError(f"the process {pid} is registered already")
    other = Other(port)
    try:
        other.start()
        other.stop()
    except OSError as error:
        raise RuntimeError(f"no profiler server answers at port {port} for the process {pid}") from error
    others[pid] = other

    def unregister() -> None:
        others.pop(pid, None)

    return unregister


class Other:
    """The server of another process."""

    def __init__(self, port: int):
        self._address = f"http://localhost:{port}"
        self._number = ""

    def start(self) -> None:
        """Begins a recording there. OSError where nobody answers."""
        with urllib.request.urlopen(f"{self._address}/start", timeout=5) as answer:
            self._number = answer.read().decode()

    def stop(self) -> bytes:
        """Ends it and gives the XSpace message."""
        with urllib.request.urlopen(f"{self._address}/stop?recording={self._number}", timeout=5) as answer:
            return answer.read()


__all__ = ["ProfilerServer", "register_subprocess", "start_server", "stop_server"]
