"""An MCP server over HTTP that means no good: it speaks the protocol by hand, in threads of the
test's own process. What is wrong with it is the name of the tool that is called, or of
what is read.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

WRONGS = ("drop", "hang", "page", "garbage", "refuse", "expired", "flood", "endless", "cut", "part")


@dataclass
class HostileHttp:
    """Its ``url``, the tools that were ``called``, and the ``tokens`` that came; where it
    ``drops_lists``, a question for what it has to read breaks its connection.
    """

    url: str
    called: list[str] = field(default_factory=list)
    tokens: set[str | None] = field(default_factory=set)
    drops_lists: bool = False
    released: threading.Event = field(default_factory=threading.Event)


@contextmanager
def hostile_http() -> Iterator[HostileHttp]:
    """A server for as long as the block lasts."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            told.tokens.add(self.headers.get("Authorization"))
            message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with suppress(OSError):
                self._answer(message)

        def do_GET(self) -> None:
            self.send_error(405)

        def _answer(self, message: dict[str, Any]) -> None:
            match message.get("method"):
                case "initialize":
                    version = message["params"]["protocolVersion"]
                    info = {"name": "http", "version": "1"}
                    capabilities: dict[str, Any] = {"tools": {}, "resources": {}}
                    result = {"protocolVersion": version, "capabilities": capabilities}
                    self._say(message, {**result, "serverInfo": info})
                case "tools/list":
                    hint = {"readOnlyHint": True}
                    names = [*WRONGS, "well", "long", "escapes", "halved"]
                    schema = {"type": "object"}
                    tools = [{"name": n, "inputSchema": schema, "annotations": hint} for n in names]
                    tools.append({"name": "echo", "inputSchema": schema, "description": self._sent})
                    once = [{"name": n, "inputSchema": schema} for n in ("pay", "buy", "later")]
                    self._say(message, {"tools": [*tools, *once]})
                case "tools/call":
                    name = message["params"]["name"]
                    told.called.append(name)
                    self._call(message, {"pay": "drop", "buy": "expired"}.get(name, name))
                case "resources/list" if not told.drops_lists:
                    self._say(message, {"resources": [{"uri": "notes://well", "name": "well"}]})
                case "resources/list":
                    self.close_connection = True
                case "resources/read":
                    self._read(message, message["params"]["uri"])
                case _ if "id" in message:
                    error = {"code": -32601, "message": "no such method"}
                    self._send(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}))
                case _:
                    self.send_response(202)
                    self.send_header("Content-Length", "0")
                    self.end_headers()

        @property
        def _sent(self) -> str:
            return f"you sent {self.headers.get('Authorization')}"

        def _read(self, message: dict[str, Any], uri: str) -> None:
            name = uri.removeprefix("notes://")
            codes = {"fail": -32603, "none": -32002, "zero": 0}
            if name in codes:
                error = {"code": codes[name], "message": f"no {name}"}
                self._send(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}))
            elif name in {"well", "echo"}:
                text = self._sent if name == "echo" else name
                self._say(message, {"contents": [{"uri": uri, "text": text}]})
            else:
                self._call(message, name)

        def _call(self, message: dict[str, Any], name: str) -> None:
            match name:
                case "drop":
                    self.close_connection = True
                case "hang":
                    told.released.wait()
                    self.close_connection = True
                case "page":
                    self._send("<html>Not found</html>", "text/html")
                case "garbage":
                    self._send("this is no JSON {")
                case "refuse":
                    self.send_error(500)
                case "expired":
                    self._send('{"error": "invalid_token"}', status=401)
                case "flood":
                    self._head("application/json", 1 << 40, 500)
                    while not told.released.is_set():
                        self.wfile.write(b"[" * (1 << 20))
                case "endless":
                    self._head("application/json", 1 << 40)
                    while not told.released.is_set():
                        self.wfile.write(b"[" * (1 << 20))
                case "cut":
                    self._head("text/event-stream", 1 << 20)
                    self.wfile.write(b'data: {"jsonrpc": "2.0", "id"')
                    self.close_connection = True
                case "part":
                    self._head("application/json", 1 << 20)
                    self.wfile.write(b'{"jsonrpc": "2.0", "id"')
                    self.close_connection = True
                case "later":
                    told.released.wait()
                    self._say(message, {"content": [{"type": "text", "text": "well"}]})
                case "long":
                    content = [{"type": "text", "text": "y" * (3 << 20)}]
                    answer = {"jsonrpc": "2.0", "id": message["id"], "result": {"content": content}}
                    self._send(f"data: {json.dumps(answer)}\n\n", "text/event-stream")
                case "halved":
                    content = [{"type": "text", "text": "smile \ud83d"}]
                    answer = {"jsonrpc": "2.0", "id": message["id"], "result": {"content": content}}
                    self._send(f"data: {json.dumps(answer)}\n\n", "text/event-stream")
                case "echo":
                    self._say(message, {"content": [{"type": "text", "text": self._sent}]})
                case "escapes":
                    self._send("page", "text/\x1b]0;title\x07")
                case _:
                    self._say(message, {"content": [{"type": "text", "text": "well"}]})

        def _say(self, message: dict[str, Any], result: dict[str, Any]) -> None:
            self._send(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}))

        def _send(self, text: str, kind: str = "application/json", status: int = 200) -> None:
            self._head(kind, len(text), status)
            self.wfile.write(text.encode())

        def _head(self, kind: str, length: int, status: int = 200) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(length))
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    told = HostileHttp(f"http://127.0.0.1:{server.server_port}/mcp")
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield told
    finally:
        told.released.set()
        server.shutdown()
        server.server_close()
