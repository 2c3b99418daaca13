"""Keys that AWS' key service keeps: a data key stands in the file of keys as KMS wrapped it, and is
unwrapped there when a process begins (envelope encryption).

Whoever has the file alone has no key; who may unwrap it, KMS decides and records. The id of the key
is bound to it as KMS' encryption context, so a wrapped key under another id is refused.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qsl

from runtime.base.errors import InputError

PREFIX = "kms:"
"""How the second word of a line of keys begins where the third is a wrapped key."""

CONTEXT = "holdfast-key"
"""The name in KMS' encryption context under which a key's id stands."""

BYTES = 32
_CONNECT_SECONDS, _READ_SECONDS, _TRIES = 5.0, 10.0, 3
_OPTIONS = frozenset({"region", "endpoint_url", "profile"})
_REGION = re.compile(r"arn:[^:]+:kms:([^:]+):.*")


@dataclass(frozen=True)
class KmsKey:
    """A key of KMS, and where it is: as text ``kms:KEY?region=R&endpoint_url=URL&profile=P``.

    ``key`` is an id, an alias (``alias/holdfast``) or an ARN, whose region is taken where no other
    is told.
    """

    key: str
    region: str | None = None
    endpoint_url: str | None = None
    profile: str | None = None

    @classmethod
    def parsed(cls, text: str) -> KmsKey:
        """The key that a text names.

        Raises:
            InputError: if it names none, or says more than is known.
        """
        key, _, query = text.removeprefix(PREFIX).partition("?")
        options = dict(parse_qsl(query, keep_blank_values=True))
        unknown = options.keys() - _OPTIONS
        if not text.startswith(PREFIX) or not key or unknown or not all(options.values()):
            raise InputError(
                f"{text!r} names no key of KMS: expected kms:KEY with the options"
                f" {', '.join(sorted(_OPTIONS))}, such as kms:alias/holdfast?region=eu-west-1"
            )
        return cls(key, **options)

    def unwrapped(self, name: str, wrapped: bytes) -> bytes:
        """The data key called ``name``.

        A process asks once for each: its answer is kept, a failure is not.

        Raises:
            InputError: if KMS cannot be asked, refuses, or answers with what is no key.
        """
        return _unwrapped(self, name, wrapped)

    def made(self, name: str) -> bytes:
        """A new data key called ``name``, wrapped: nobody but KMS has seen it.

        Raises:
            InputError: as ``unwrapped``.
        """
        answer = self._asked(
            "generate_data_key_without_plaintext",
            name,
            KeyId=self.key,
            KeySpec="AES_256",
        )
        wrapped = answer.get("CiphertextBlob")
        if not isinstance(wrapped, bytes) or not wrapped:
            raise InputError(f"{self} answered with no key for {name!r}")
        return wrapped

    def _asked(self, operation: str, name: str, **arguments: Any) -> dict[str, Any]:
        # boto3 takes a third of a second to import; most keys are no key service's.
        import boto3
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError, ClientError
        from botocore.parsers import ResponseParserError

        match = _REGION.fullmatch(self.key)
        config = Config(
            connect_timeout=_CONNECT_SECONDS,
            read_timeout=_READ_SECONDS,
            retries={"total_max_attempts": _TRIES, "mode": "standard"},
        )
        try:
            session = boto3.session.Session(
                profile_name=self.profile,
                region_name=self.region or (match[1] if match else None),
            )
            client: Any = session.client("kms", endpoint_url=self.endpoint_url, config=config)
            answer: dict[str, Any] = getattr(client, operation)(
                EncryptionContext={CONTEXT: name}, **arguments
            )
        except ClientError as error:
            raise InputError(f"{self} refuses the key {name!r}: {_reason(error)}") from error
        except (BotoCoreError, ValueError) as error:
            raise InputError(f"{self} cannot be asked for the key {name!r}: {error}") from error
        except (ResponseParserError, TypeError, AttributeError) as error:
            # botocore's parser fails so on what is none of KMS' answers.
            raise InputError(f"{self} answered nonsense for the key {name!r}: {error}") from error
        return answer

    def __str__(self) -> str:
        """As it stands in messages."""
        where = [one for one in (self.endpoint_url, self.region) if one]
        return f"KMS key {self.key}" + (f" ({', '.join(where)})" if where else "")


@lru_cache(64)
def _unwrapped(kms: KmsKey, name: str, wrapped: bytes) -> bytes:
    answer = kms._asked("decrypt", name, KeyId=kms.key, CiphertextBlob=wrapped)
    key = answer.get("Plaintext")
    if not isinstance(key, bytes) or len(key) != BYTES:
        raise InputError(f"{kms} answered with what is no key of {BYTES} bytes for {name!r}")
    return key


def _reason(error: Any) -> str:
    told = error.response.get("Error", {})
    code = told.get("Code") or "no reason"
    advice = _ADVICE.get(code.removesuffix("Exception"), "")
    return ": ".join(text for text in (code, told.get("Message"), advice) if text)


_ADVICE = {
    "InvalidCiphertext": "the line is another key's, or has another id than it was made with",
    "IncorrectKey": "it was wrapped with another key of KMS",
    "AccessDenied": "these credentials need kms:Decrypt, and 'holdfast keys' needs"
    " kms:GenerateDataKeyWithoutPlaintext",
}


def line_of(name: str, reference: str, wrapped: bytes) -> str:
    """The line of a file of keys for a wrapped key."""
    return f"{name} {reference} {base64.b64encode(wrapped).decode('ascii')}"
