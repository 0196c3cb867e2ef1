"""The network side: pages over HTTP and their live connection over a websocket, both on one port.

Runs in a thread of its own and never touches the world. It listens on 127.0.0.1 unless another host is asked for by
name, and then only to those who know its token. Requests must name the page's own host, and come from the page itself:
no other website that is open in the browser can reach it.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import secrets
import socket
import threading
import time
from functools import partial
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from typing import Any, Protocol
from urllib.parse import parse_qs, urlsplit
from weakref import WeakSet

from websockets.asyncio.server import ServerConnection, serve
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.protocol import State

from phyxel.errors import PhyxelError
from phyxel.view.commands import Command, Save, Seen, Sight, Switch, Upload, parse
from phyxel.view.hub import Hub, Page
from phyxel.view.page_files import content_type, inline_hashes, live_page, page_files, saved_html
from phyxel.view.uploads import Arriving

LOCAL = "127.0.0.1"
"""reachable from this machine alone"""
PORT, PORTS = 8765, 64
"""tried first; and so many after it, of which the first free one is taken"""
MOST_PAGES = 16
"""at once"""
LARGEST_MESSAGE = 65_536
"""[bytes] that a page may send at once"""
BUFFERED = 65_536
"""[bytes] that wait in a connection before the next frame is made"""
PATIENCE = 15.0
"""[s] that a page may take to read what is sent to it"""
MOST_COMMANDS = 500.0
"""[1/s] of a page, in the mean; more wait until it is their turn"""
MOST_FAULTS = 50
"""messages of a page that make no sense, before it is sent away"""


class Viewable(Protocol):
    """What is shown: a live world or a finished run."""

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def joined(self, page: int) -> None:
        """A page is there: tell it the scene."""

    def ask(self, page: int, command: Command) -> None:
        """A command of a page, to be done soon."""

    def gone(self, page: int) -> None:
        """A page has left: let go of what it held."""


class Server:
    """Serves a show to pages: `with Server(show, hub) as server: print(server.address)`."""

    def __init__(
        self, show: Viewable, hub: Hub, host: str | None = None, port: int | None = None, token: str | None = None
    ) -> None:
        """`host` is another name or address to listen on than 127.0.0.1; it takes a `token`, made here if left out."""
        self._show, self._hub = show, hub
        self.host = host or LOCAL
        local = self.host in (LOCAL, "localhost")
        self.token = token or (None if local else secrets.token_urlsafe(24))
        self._socket = _listening(LOCAL if local else self.host, port)
        self.listens_at, self.port = self._socket.getsockname()[:2]
        self._hosts = {f"{LOCAL}:{self.port}", f"localhost:{self.port}"} if local else None
        self._files = page_files()
        self._page = live_page(self._files) if "index.html" in self._files else ""
        self._saved: tuple[str, str, bytes] | None = None
        self._arriving: dict[int, Arriving] = {}
        """files on their way, by page"""
        self._loop = asyncio.new_event_loop()
        self._ending: asyncio.Future[None] | None = None
        self._thread = threading.Thread(target=self._run, name="phyxel-pages", daemon=True)
        self._started = threading.Event()

    @property
    def address(self) -> str:
        """Of the page, for a browser."""
        named = socket.gethostname() if self.host in ("0.0.0.0", "::", "") else self.host
        host = f"[{named}]" if ":" in named else named
        return f"http://{host}:{self.port}/" + (f"?token={self.token}" if self.token else "")

    def start(self) -> None:
        try:
            self._show.start()
        except BaseException:
            self.stop()
            raise
        self._thread.start()
        self._started.wait()

    def stop(self) -> None:
        """Send all pages away and stop the show."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._end)
            self._thread.join()
        self._socket.close()
        self._show.stop()

    def __enter__(self) -> Server:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _end(self) -> None:
        if self._ending is not None and not self._ending.done():
            self._ending.set_result(None)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        self._ending = self._loop.create_future()
        logger = logging.getLogger("phyxel.view.server")
        logger.addHandler(logging.NullHandler())  # what hostile guests do is no news for the user's terminal
        logger.propagate = False
        options: dict[str, Any] = {"max_size": LARGEST_MESSAGE, "write_limit": BUFFERED, "max_queue": 16}
        options |= {"compression": None, "open_timeout": 30, "close_timeout": 1, "logger": logger}
        options |= {"sock": self._socket, "process_request": self._answer, "server_header": "phyxel"}
        guests: WeakSet[ServerConnection] = WeakSet()

        def welcome(*arguments: Any, **settings: Any) -> ServerConnection:
            guest = ServerConnection(*arguments, **settings)
            guests.add(guest)
            return guest

        options["create_connection"] = welcome
        async with serve(self._meet, **options):
            self._started.set()
            await self._ending
            for guest in guests:
                if guest.state is State.CONNECTING:  # nobody waits for those who have asked for nothing
                    guest.transport.abort()

    # Pages over HTTP

    def _answer(self, connection: ServerConnection, request: Request) -> Response | None:
        """A page or one of its files; None for the live connection."""
        if not self._at_home(request.headers):
            return _plain(HTTPStatus.FORBIDDEN, "This page is only for its own address.")
        parts = urlsplit(request.path)
        if not self._may_enter(request.headers, parts.query):
            return _plain(HTTPStatus.FORBIDDEN, "Open the address that `phyxel view` has printed, with its token.")
        if parts.path == "/live":
            return None if "Upgrade" in request.headers else _plain(HTTPStatus.UPGRADE_REQUIRED, "A websocket.")
        if parts.path == "/":
            return self._front_page(request.headers)
        name = parts.path.removeprefix("/page/")
        if name in self._files and parts.path != name:
            return _found(content_type(name), self._files[name])
        if self._saved is not None and parts.path == self._saved[0]:
            return _found("text/html; charset=utf-8", self._saved[2], attached=self._saved[1])
        return _plain(HTTPStatus.NOT_FOUND, "There is nothing here.")

    def _at_home(self, headers: Headers) -> bool:
        """Whether a request names this server as its host, and comes from its page if it comes from a page at all.

        Without the first, a website could have its own name point here (DNS rebinding); without the second, any could
        open the live connection, which browsers do not keep apart by origin.
        """
        hosts, origins = headers.get_all("Host"), headers.get_all("Origin")
        if len(hosts) != 1 or (self._hosts is not None and hosts[0] not in self._hosts):
            return False
        return all(origin == f"http://{hosts[0]}" for origin in origins)

    def _may_enter(self, headers: Headers, query: str) -> bool:
        """Whether a request brings the token, if there is one: in the address, or in the cookie that the page got."""
        if self.token is None:
            return True
        brought = parse_qs(query).get("token", [])
        for line in headers.get_all("Cookie"):
            try:
                cookie = SimpleCookie(line).get(self._cookie)
            except CookieError:
                continue
            brought += [] if cookie is None else [cookie.value]
        return any(secrets.compare_digest(one.encode(), self.token.encode()) for one in brought)

    @property
    def _cookie(self) -> str:
        return f"phyxel-{self.port}"

    def _front_page(self, headers: Headers) -> Response:
        response = _found("text/html; charset=utf-8", self._page.encode())
        scripts = " ".join(["'self'", *inline_hashes(self._page)])
        response.headers["Content-Security-Policy"] = (
            f"default-src 'none'; script-src {scripts}; style-src 'self'; img-src 'self' data: blob:; "
            f"connect-src 'self' ws://{headers['Host']}; worker-src 'self' blob:; base-uri 'none'; form-action 'none'; "
            "frame-ancestors 'none'"
        )
        if self.token is not None:
            response.headers["Set-Cookie"] = f"{self._cookie}={self.token}; Path=/; HttpOnly; SameSite=Strict"
        return response

    # The live connection

    async def _meet(self, connection: ServerConnection) -> None:
        """A page, from when it comes to when it goes."""
        if len(self._hub.pages) >= MOST_PAGES:
            await connection.close(1013, f"{MOST_PAGES} pages are open already; close one")
            return
        waiting = asyncio.Event()
        page = self._hub.join(partial(self._loop.call_soon_threadsafe, waiting.set))
        self._show.joined(page.number)
        tasks = [asyncio.create_task(self._send(connection, page, waiting))]
        tasks.append(asyncio.create_task(self._listen(connection, page)))
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._expect(page, None)
            self._hub.leave(page)
            self._show.gone(page.number)

    async def _send(self, connection: ServerConnection, page: Page, waiting: asyncio.Event) -> None:
        """Send what waits for a page, one thing at a time: while one is on its way, newer frames replace older ones."""
        while True:
            await waiting.wait()
            waiting.clear()
            while not page.overdue:
                began = time.perf_counter()
                message = self._hub.next(page)
                if message is None:
                    break
                try:
                    async with asyncio.timeout(PATIENCE):
                        await connection.send(message)
                except TimeoutError:
                    connection.transport.abort()  # nobody reads: a polite farewell would wait behind the rest
                    return
                except ConnectionClosed:
                    return
                if isinstance(message, bytes):
                    self._hub.spent(time.perf_counter() - began)
            if page.overdue:
                connection.transport.abort()
                return

    async def _listen(self, connection: ServerConnection, page: Page) -> None:
        """Hear a page's commands. More than are good wait in the network, not here."""
        faults = 0
        turn = time.monotonic()
        while faults < MOST_FAULTS:
            try:
                message = await connection.recv()
            except ConnectionClosed:
                return
            # A second's worth may come at once; a long message counts as several.
            weight = 1 if page.number in self._arriving else 1 + len(message) // 1024
            turn = max(turn, time.monotonic() - 1.0) + weight / MOST_COMMANDS
            await asyncio.sleep(max(turn - time.monotonic(), 0.0))
            try:
                self._hear(page, message)
            except PhyxelError as error:
                faults += 1
                self._hub.tell({"kind": "notice", "level": "error", "text": str(error)}, page.number)
        await connection.close(1008, "too many messages that make no sense")

    def _hear(self, page: Page, message: str | bytes) -> None:
        if isinstance(message, bytes):
            self._receive(page, message)
            return
        command = parse(message)
        match command:
            case Upload():
                self._expect(page, command)
            case Seen():
                self._hub.saw(page, command.frame)
            case Switch(do="record"):
                self._hub.record(command.on)
            case Save(do="html"):
                threading.Thread(target=self._save, args=(page.number, command.camera), daemon=True).start()
            case _:
                self._show.ask(page.number, command)

    def _expect(self, page: Page, command: Upload | None) -> None:
        """Files of a page are to come, in place of any that have not come whole."""
        if (before := self._arriving.pop(page.number, None)) is not None:
            before.forget()
        if command is not None:
            self._arriving[page.number] = Arriving(command.files)

    def _receive(self, page: Page, data: bytes) -> None:
        if page.number not in self._arriving:
            raise PhyxelError("a command is text, not bytes")
        try:
            command = self._arriving[page.number].add(data)
        except (OSError, PhyxelError) as error:
            self._expect(page, None)
            raise PhyxelError(f"the file could not be taken: {error}") from error
        if command is not None:
            del self._arriving[page.number]
            self._show.ask(page.number, command)

    def _save(self, page: int, camera: Sight | None) -> None:
        """Write what was recorded as a page of its own, for one page to download, which it looks like."""
        scene = (self._hub.scene or {}) | ({} if camera is None else {"camera": camera.model_dump()})
        self._hub.tell({"kind": "notice", "level": "info", "text": "packing what was seen into one file ..."}, page)
        try:
            name, html, remark = saved_html(scene, self._hub.recorder.take(), self._files)
        except PhyxelError as error:
            self._hub.tell({"kind": "notice", "level": "error", "text": str(error)}, page)
            return
        self._saved = f"/saved/{secrets.token_urlsafe(12)}.html", name, html
        message = {"kind": "file", "name": name, "type": "text/html", "url": self._saved[0]}
        self._hub.tell(message, page)
        if remark:
            self._hub.tell({"kind": "notice", "level": "info", "text": remark}, page)


def _listening(host: str, port: int | None) -> socket.socket:
    """A socket that listens, on the port asked for or on the first free one."""
    try:
        family, *_, address = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError) as error:
        raise PhyxelError(f'host "{host}": no such address ({error})') from error
    for candidate in range(PORT, PORT + PORTS) if port is None else [port]:
        try:
            return socket.create_server((str(address[0]), candidate), family=family, backlog=64)
        except OSError as error:
            if error.errno == errno.EADDRNOTAVAIL:
                raise PhyxelError(f'host "{host}": not an address of this machine') from error
            reason = os.strerror(error.errno or 0)
    remedy = "give a free one with --port" if port is None else "leave --port away for a free one"
    raise PhyxelError(f"port {PORT if port is None else port} of {host} cannot be listened on ({reason}); {remedy}")


def _found(kind: str, body: bytes, attached: str | None = None) -> Response:
    headers = Headers({"Content-Type": kind, "Content-Length": str(len(body)), "Connection": "close"})
    headers.update({"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"})
    if attached is not None:
        headers["Content-Disposition"] = f'attachment; filename="{attached}"'
    return Response(200, "OK", headers, body)


def _plain(status: HTTPStatus, text: str) -> Response:
    response = _found("text/plain; charset=utf-8", f"{text}\n".encode())
    return Response(status.value, status.phrase, response.headers, response.body)
