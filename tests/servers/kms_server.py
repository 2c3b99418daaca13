"""A key service that speaks AWS KMS' protocol over HTTP: ``Decrypt`` and
``GenerateDataKeyWithoutPlaintext``, with an own master key for each key that it has.

Keys are bound to their encryption context, as KMS binds them; whatever else it is asked, it refuses
as KMS does, by ``__type`` and a message.
"""

from __future__ import annotations

import base64
import json
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_NONCE = 12


@dataclass
class KmsServer:
    """The service: ``keys`` are the names that it knows.

    ``asked`` are the operations, each with the id of the data key. ``refuses`` is an error that
    answers all; ``garbage`` is a body that does.
    """

    url: str = ""
    keys: dict[str, bytes] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)
    refuses: str = ""
    garbage: bytes | None = None

    def has(self, name: str) -> str:
        """Have a key, and tell how a line of keys names it."""
        self.keys[name] = secrets.token_bytes(32)
        return f"{name}?region=eu-west-1&endpoint_url={self.url}"

    def answer(self, operation: str, request: dict[str, Any]) -> tuple[int, bytes]:
        """What is answered: the status and the body."""
        context = request.get("EncryptionContext", {})
        self.asked.append((operation, context.get("holdfast-key", "")))
        if self.garbage is not None:
            return 200, self.garbage
        if self.refuses:
            return 400, _error(self.refuses, "as the test has it")
        if (master := self.keys.get(request.get("KeyId", ""))) is None:
            return 400, _error("NotFoundException", "there is no such key")
        about = json.dumps(context, sort_keys=True).encode()
        if operation == "Decrypt":
            blob = base64.b64decode(request["CiphertextBlob"])
            try:
                key = AESGCM(master).decrypt(blob[:_NONCE], blob[_NONCE:], about)
            except (InvalidTag, ValueError):
                return 400, _error("InvalidCiphertextException", "")
            return 200, _json(Plaintext=key, KeyId=request["KeyId"])
        assert (operation, request["KeySpec"]) == ("GenerateDataKeyWithoutPlaintext", "AES_256")
        nonce = secrets.token_bytes(_NONCE)
        blob = nonce + AESGCM(master).encrypt(nonce, secrets.token_bytes(32), about)
        return 200, _json(CiphertextBlob=blob, KeyId=request["KeyId"])


def _json(**values: Any) -> bytes:
    told = {
        name: base64.b64encode(value).decode() if isinstance(value, bytes) else value
        for name, value in values.items()
    }
    return json.dumps(told).encode()


def _error(kind: str, message: str) -> bytes:
    return _json(__type=kind, message=message)


@contextmanager
def kms_server() -> Iterator[KmsServer]:
    """The service on a port of its own, until the end of the block."""
    made = KmsServer()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.headers["Authorization"].startswith("AWS4-HMAC-SHA256")
            operation = self.headers["X-Amz-Target"].removeprefix("TrentService.")
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status, answer = made.answer(operation, json.loads(body))
            self.send_response(status)
            self.send_header("Content-Type", "application/x-amz-json-1.1")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        made.url = f"http://127.0.0.1:{server.server_address[1]}"
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        try:
            yield made
        finally:
            server.shutdown()
            serving.join()
