"""A remote codec for Temporal's CLI and web UI, which show prompts and replies instead of
references to them.

Temporal's protocol: ``POST …/decode`` and ``…/encode`` with ``{"payloads": [{"metadata": {name:
base64}, "data": base64}]}``, answered in the same form (docs.temporal.io/codec-server). Payloads
that hold no reference come back as they are.

Payloads that are compressed are shown as they were. It answers those alone who send its ``Token``.
With keys it also decrypts: a payload that is encrypted is shown by its own key, wherever
it stands, since the protocol does not tell of which workflow it is. What is to be encoded comes
back as it is: it would have to be signed for its place.
"""

from __future__ import annotations

import base64
import json
import re
import sys
from collections.abc import Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from pydantic import ValidationError
from temporalio.api.common.v1 import Payload

from activities.contracts import TurnCall, TurnReply
from runtime.archive import keys
from runtime.archive.job import JobArchive
from runtime.archive.stores import ObjectStore
from runtime.base.errors import ArchiveError
from runtime.base.native_arguments import read_arguments
from runtime.base.values import StepRef, ToolCall
from runtime.cli._codec_token import FORM, LOGIN, Token
from runtime.cli.output import note
from runtime.projection.replies import parse_reply
from runtime.projection.segments import Add, Reply, Segment
from runtime.server.authentic.compression import COMPRESSED, decompressed
from runtime.server.authentic.encryption import (
    ENCRYPTED,
    EncryptionKeys,
    NoKey,
    NotDecrypted,
    is_encrypted,
)

MOST_BYTES = 64 << 20
"""The longest request that is read."""

MOST_FORM = 4096
"""The longest form of ``/login``."""

MOST_SHOWN = 256 << 20
"""The longest answer: a short request may ask for what is long."""

_PIECE = 64 << 10
_LOOPBACK = re.compile(r"https?://(localhost|127\.0\.0\.1|\[::1\])(:\d+)?")
_LOOPBACK_HOST = re.compile(r"(localhost|127\.0\.0\.1|\[::1\])(:\d+)?")
_EXPECTED = 'expected {"payloads": [...]}'
_JSON = base64.b64encode(b"json/plain").decode()
_CLOSED = frozenset(base64.b64encode(one).decode() for one in (ENCRYPTED, COMPRESSED))
_UNREADABLE = (
    ArchiveError, ValidationError, ValueError, KeyError, TypeError, AttributeError, RecursionError,
)  # fmt: skip


def make_server(
    store: ObjectStore,
    host: str,
    port: int,
    origins: frozenset[str],
    token: Token,
    keys: EncryptionKeys | None = None,
) -> ThreadingHTTPServer:
    """A server, not yet serving; ``server_address`` tells the port.

    It serves pages of this machine and of ``origins``, and whoever sends the ``token``; with
    ``keys`` it decrypts.

    Raises:
        OSError: if the address cannot be had.
    """

    class Handler(_Handler):
        objects = store
        allowed = origins
        local = host in {"127.0.0.1", "::1", "localhost"}
        wanted = token
        opened_with = keys

    return _Server((host, port), Handler)


class _Server(ThreadingHTTPServer):
    # Else a request that hangs would keep the process from ending.
    daemon_threads = True

    def handle_error(self, request: Any, _client_address: Any) -> None:
        """The kind of an error alone: its message, and a traceback's, may hold what was asked."""
        error = sys.exc_info()[0]
        note(f"a request failed: {error.__name__ if error else 'unknown'}")


def decoded(
    store: ObjectStore, payload: Mapping[str, Any], keys: EncryptionKeys | None = None
) -> Mapping[str, Any]:
    """The payload, decrypted with ``keys`` and decompressed, with what its reference stands for.

    One whose key is not there comes back as it is, and so does one that has no reference, or of
    which the archive has nothing.
    """
    payload = _opened(payload, keys)
    try:
        if payload.get("metadata", {}).get("encoding") != _JSON:
            return payload
        value = json.loads(base64.b64decode(payload.get("data", "")))
        shown = _shown(store, value) if isinstance(value, dict) else None
    # Anything may be sent here: what cannot be read is shown as it came.
    except _UNREADABLE:
        return payload
    if shown is None:
        return payload
    # A model may write lone surrogates, which have no UTF-8.
    data = base64.b64encode(
        json.dumps(shown, ensure_ascii=False).encode("utf-8", "replace")
    ).decode()
    return {**payload, "data": data}


def _opened(payload: Mapping[str, Any], keys: EncryptionKeys | None) -> Mapping[str, Any]:
    try:
        if payload.get("metadata", {}).get("encoding") not in _CLOSED:
            return payload
        whole = Payload(
            metadata={name: base64.b64decode(text) for name, text in payload["metadata"].items()},
            data=base64.b64decode(payload["data"]),
        )
        if is_encrypted(whole):
            if keys is None:
                return payload
            whole = keys.decrypted(whole)
        opened = decompressed(whole)
    except (NoKey, NotDecrypted, *_UNREADABLE):
        return payload
    return {
        "metadata": {n: base64.b64encode(text).decode() for n, text in opened.metadata.items()},
        "data": base64.b64encode(opened.data).decode(),
    }


def _shown(store: ObjectStore, value: dict[str, Any]) -> dict[str, Any] | None:
    # The protocol does not tell of what type a payload is: the fields do.
    if {"key", "turn", "layout", "reset_event_id"} <= value.keys():
        return _call(store, TurnCall.model_validate(value), value)
    if "step" in value:
        return _reply(store, TurnReply.model_validate(value))
    if value.keys() == {"key", "digest"} and keys.is_end(value["key"]):
        return _end(store, StepRef.model_validate(value))
    return None


def _call(store: ObjectStore, call: TurnCall, value: dict[str, Any]) -> dict[str, Any]:
    """A turn's call: its prompt, made as the activity makes it, also before the activity has
    run.
    """
    archive = JobArchive.of(store, call.key)
    layout = call.layout.apply(archive.layout(call.parent), archive.reply_segment(call.parent))
    new: set[int] = set()
    position = 0
    for part in call.layout.parts:
        length = 1 if isinstance(part, Add | Reply) else part.stop - part.start
        new.update(range(position, position + length) if isinstance(part, Add | Reply) else ())
        position += length
    rest = {name: item for name, item in value.items() if name not in {"key", "turn", "layout"}}
    return {
        "job": str(call.key),
        "turn": call.turn,
        "prompt_tokens": sum(segment.tokens for segment in layout),
        "prompt": [_segment(segment, new=n in new) for n, segment in enumerate(layout)],
        **rest,
    }


def _reply(store: ObjectStore, reply: TurnReply) -> dict[str, Any]:
    """A turn's reply, its statement as lines, and what the archive's step says of the call."""
    turn_key = keys.parse_turn_key(reply.step.key)
    if turn_key is None:
        raise ValueError(f"{reply.step.key} is no step")
    step = _archive(store, turn_key.job).step(reply.step)
    parsed = parse_reply(reply.text, reply.tool_calls, reply.finish_reason, reply.refusal, "tool")
    return {
        "turn": step.turn,
        "text": reply.text.splitlines(),
        "statement": (parsed.statement or "").splitlines(),
        "tool_calls": [_tool_call(call) for call in reply.tool_calls],
        "thinking": list(reply.thinking),
        "finish_reason": reply.finish_reason,
        "refusal": reply.refusal,
        "usage": reply.usage.model_dump(mode="json"),
        "cost_usd": reply.cost_usd,
        "started_at": step.started_at,
        "finished_at": step.finished_at,
        "capture": str(step.capture),
        "status_code": step.status_code,
        "response_bytes": step.response_bytes,
        "step": reply.step.model_dump(mode="json"),
    }


def _end(store: ObjectStore, ref: StepRef) -> dict[str, Any] | None:
    # The last of them: a batch or a job may be called so.
    job, _, run = ref.key.rpartition("/ends/")
    end = _archive(store, job).end(run)
    return None if end is None else {**end.document(), "end": ref.model_dump(mode="json")}


def _archive(store: ObjectStore, prefix: str) -> JobArchive:
    return JobArchive.of(store, keys.job_of(prefix))


def _segment(segment: Segment, *, new: bool) -> dict[str, Any]:
    about = f"{segment.role} · {segment.kind} · {segment.origin} · {segment.tokens:,} tokens" + (
        " · new" if new else ""
    )
    shown: dict[str, Any] = {"segment": about}
    if segment.text:
        shown["text"] = segment.text.splitlines()
    if segment.tool_calls:
        shown["tool_calls"] = [_tool_call(call) for call in segment.tool_calls]
    return shown


def _tool_call(call: ToolCall) -> dict[str, Any]:
    """A native call; texts of several lines as lists of lines, since JSON shows line breaks as
    escapes.
    """
    try:
        arguments = read_arguments(call.arguments)
    except ValueError:
        arguments = call.arguments
    if isinstance(arguments, dict):
        arguments = {
            n: v.splitlines() if isinstance(v, str) and "\n" in v else v
            for n, v in arguments.items()
        }
    return {"id": call.id, "name": call.name, "arguments": arguments}


class _Handler(BaseHTTPRequestHandler):
    objects: ObjectStore
    allowed: frozenset[str]
    local: bool
    wanted: Token
    opened_with: EncryptionKeys | None
    server_version = "holdfast-codec"
    # The header would tell everybody Python's version.
    sys_version = ""
    protocol_version = "HTTP/1.1"
    # A client that connects and sends nothing would keep a thread for ever.
    timeout = 60

    def do_OPTIONS(self) -> None:
        """A browser asks what it may send."""
        if self._welcome():
            self._answer(HTTPStatus.NO_CONTENT, b"")

    def do_GET(self) -> None:
        """Somebody looks what this is, or enters the token."""
        if not self._welcome():
            return
        if self.path == LOGIN:
            self._answer(HTTPStatus.OK, FORM, "text/html")
        else:
            self._answer(
                HTTPStatus.OK,
                b"Holdfast's codec endpoint for Temporal: POST /decode\n",
                "text/plain",
            )

    def do_POST(self) -> None:
        """``/decode`` and ``/encode``, under any path, since the CLI may put the namespace before
        them.
        """
        if not self._welcome():
            return
        operation = self.path.partition("?")[0].rpartition("/")[2]
        length = self.headers.get("content-length", "")
        login = self.path == LOGIN
        if operation not in {"decode", "encode"} and not login:
            self._refuse(HTTPStatus.NOT_FOUND, "there are /decode and /encode")
        elif not length.isdigit():
            self._refuse(HTTPStatus.LENGTH_REQUIRED, "a content-length is needed")
        elif int(length) > (most := MOST_FORM if login else MOST_BYTES):
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"at most {most} bytes")
        elif login:
            self._enter(self.rfile.read(int(length)))
        elif self._holds_token():
            self._convert(self.rfile.read(int(length)), operation)
        else:
            self._drop(int(length))
            self._refuse(HTTPStatus.UNAUTHORIZED, "expected 'Authorization: Bearer TOKEN'")

    def _drop(self, length: int) -> None:
        """Read a body before it is refused, since a client that still writes would not hear it.
        None of it is kept: anybody of this machine may send as many as they like.
        """
        while length > 0 and (piece := self.rfile.read(min(length, _PIECE))):
            length -= len(piece)

    def _convert(self, body: bytes, operation: str) -> None:
        try:
            self._converted(body, operation)
        # Python 3.14 reads what is nested deeper than it can write.
        except RecursionError:
            self._refuse(HTTPStatus.BAD_REQUEST, _EXPECTED)

    def _converted(self, body: bytes, operation: str) -> None:
        try:
            payloads = json.loads(body)["payloads"]
            if not (
                isinstance(payloads, list)
                and all(isinstance(payload, dict) for payload in payloads)
            ):
                raise TypeError
        except (ValueError, KeyError, TypeError):
            self._refuse(HTTPStatus.BAD_REQUEST, _EXPECTED)
            return
        if operation == "decode":
            shown, length = [], 0
            for payload in payloads:
                shown.append(decoded(self.objects, payload, self.opened_with))
                length += len(str(shown[-1].get("data", "")))
                if length > MOST_SHOWN:
                    self._refuse(
                        HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"at most {MOST_SHOWN} bytes are shown"
                    )
                    return
            payloads = shown
        self._answer(HTTPStatus.OK, json.dumps({"payloads": payloads}).encode())

    def _holds_token(self) -> bool:
        authorization, cookies = (
            self.headers.get(name, "") for name in ("authorization", "cookie")
        )
        return self.wanted.is_sent(authorization, cookies)

    def _enter(self, form: bytes) -> None:
        if not self.wanted.is_entered(form):
            self._refuse(HTTPStatus.UNAUTHORIZED, "this is not the token")
            return
        self._answer(
            HTTPStatus.OK,
            b"Temporal's web UI may ask now, with 'include cross-origin credentials' set.\n",
            "text/plain",
            {"Set-Cookie": self.wanted.cookie},
        )

    def _welcome(self) -> bool:
        """Whether to answer: not to pages of other sites, and not under a name that only claims to
        be this machine.
        """
        origin, host = self.headers.get("origin"), self.headers.get("host", "")
        # A browser names the origin of a page of another site; Temporal's CLI sends none.
        if origin is not None and origin not in self.allowed and not _LOOPBACK.fullmatch(origin):
            self._refuse(HTTPStatus.FORBIDDEN, "pages of this origin are not served; see --origin")
            return False
        # A page may have its own name lead to this address: then the host is that name.
        if self.local and not _LOOPBACK_HOST.fullmatch(host):
            self._refuse(HTTPStatus.FORBIDDEN, "only requests to localhost are served")
            return False
        return True

    def _refuse(self, status: HTTPStatus, message: str) -> None:
        # The request's body may be unread, and would pass for the next request.
        self.close_connection = True
        self._answer(status, json.dumps({"message": message}).encode())

    def _answer(
        self,
        status: HTTPStatus,
        body: bytes,
        kind: str = "application/json",
        more: Mapping[str, str] | None = None,
    ) -> None:
        self.send_response(status)
        for name, value in (more or {}).items():
            self.send_header(name, value)
        if status is HTTPStatus.UNAUTHORIZED:
            self.send_header("WWW-Authenticate", "Bearer")
        # Prompts are not to stay in a browser's cache.
        self.send_header("Cache-Control", "no-store")
        origin = self.headers.get("origin")
        if origin is not None and status is not HTTPStatus.FORBIDDEN:
            self.send_header("Access-Control-Allow-Origin", origin)
            self.send_header("Access-Control-Allow-Methods", "POST, GET, OPTIONS")
            self.send_header(
                "Access-Control-Allow-Headers",
                "content-type, x-namespace, authorization, caller-type",
            )
            self.send_header("Access-Control-Allow-Credentials", "true")
            # Browsers ask for it before a page of the internet may reach an address of this
            # machine.
            self.send_header("Access-Control-Allow-Private-Network", "true")
            self.send_header("Vary", "Origin")
        if status is not HTTPStatus.NO_CONTENT:
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is logged: the web UI asks often."""
