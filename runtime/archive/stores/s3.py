"""An object store on S3 or anything that speaks its protocol, through boto3.

Endpoint, region and credentials come from the standard AWS variables and profiles
(``AWS_ENDPOINT_URL_S3``, ``AWS_PROFILE``, …). Options stand in the address's query:
``s3://bucket/prefix?endpoint_url=…&region=…&profile=…
&sse=aws:kms&sse_key=…&lock=COMPLIANCE&lock_days=365``. Writes are conditional (``If-None-Match:
*``).
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit

import boto3
from botocore.config import Config
from botocore.credentials import Credentials
from botocore.exceptions import BotoCoreError, ClientError

from runtime.archive.stores.tries import check_try
from runtime.base.errors import ArchiveError, InputError, ObjectMissing
from runtime.base.failpoints import failpoint
from runtime.base.whole_numbers import whole_number

T = TypeVar("T")

_OPTIONS = {
    "endpoint_url",
    "region",
    "profile",
    "sse",
    "sse_key",
    "lock",
    "lock_days",
    "path_style",
}
_TRIES = 6
_FIRST_PAUSE_S = 0.2
_LONGEST_PAUSE_S = 5.0
_CONNECT_TIMEOUT_S = 5
_READ_TIMEOUT_S = 30
_MOST_LOCK_DAYS = 36_500
"""As S3 takes them."""
_TAKEN = {"PreconditionFailed", "412"}
_NO_BUCKET = "NoSuchBucket"
_ONE_TRY = " (reached max retries: 0)"
"""What botocore says of its own tries: of ours there were several."""
_MISSING = "NoSuchKey"
_REFUSED = {
    *("InvalidAccessKeyId", "InvalidToken", "ExpiredToken", "ExpiredTokenException"),
    # Of a file that was read half written: the new key's id, and the old one's secret.
    *("TokenRefreshRequired", "SignatureDoesNotMatch"),
}
"""Of credentials that were good before: a worker runs for longer than they are valid."""
_MISSING_HEAD = {_MISSING, "404", "NotFound"}
"""Of an answer that can have no body. Elsewhere S3 itself says ``NoSuchKey``: a 404 without it is a
proxy's, and what is behind that may well be there.
"""


class S3Store:
    """Objects in ``bucket`` under ``prefix``.

    ``extra`` are arguments added to every ``PutObject``; ``options`` are those of its address.
    Where the client's are refused and ``credentials`` knows others, it is made anew with those.
    """

    def __init__(
        self,
        client: Any,
        bucket: str,
        prefix: str = "",
        *,
        extra: Callable[[], dict[str, Any]] = dict,
        options: Mapping[str, str] = MappingProxyType({}),
        credentials: _Credentials | None = None,
    ) -> None:
        self._client = client
        self._credentials = credentials
        self._renewing = threading.Lock()
        self._bucket = bucket
        self._prefix = prefix.strip("/") + "/" if prefix.strip("/") else ""
        self._extra = extra
        self._options = options

    @classmethod
    def from_url(cls, url: str) -> S3Store:
        """The store at an ``s3://`` address.

        Raises:
            InputError: for an unknown option, a missing bucket, or what is no text.
            ArchiveError: if no client can be made (no such profile, no region where one is needed).
        """
        parts = urlsplit(url)
        try:
            url.encode()
        except UnicodeEncodeError:
            raise InputError(f"{url!r} is no archive store: it is no UTF-8") from None
        options = dict(parse_qsl(parts.query, keep_blank_values=True))
        unknown = options.keys() - _OPTIONS
        if unknown or not parts.netloc:
            what = f"unknown option {', '.join(sorted(unknown))}" if unknown else "no bucket"
            raise InputError(f"{url!r}: {what}; known options are {', '.join(sorted(_OPTIONS))}")
        # As of a variable that is not set: what is to be locked or encrypted would not be.
        if blank := sorted(name for name, value in options.items() if not value):
            raise InputError(f"{url!r}: the option {', '.join(blank)} has no value")
        credentials = _Credentials(options)
        try:
            client = credentials.client()
        # The last as of a program that is to give them, and is not there.
        except (BotoCoreError, ValueError, OSError) as error:
            raise ArchiveError(f"cannot open {url}: {error}") from error
        return cls(
            client,
            parts.netloc,
            parts.path,
            extra=_put_arguments(url, options),
            options=_without_user(options),
            credentials=credentials,
        )

    def put_if_absent(self, key: str, data: bytes) -> bool:
        """See ``ObjectStore``.

        A try whose answer was lost may have stored the object; the next try then finds the key
        taken. So after such a try the object is compared: if it is ours, it was our write.
        """
        unsure = False

        def put() -> bool:
            nonlocal unsure
            try:
                failpoint("store.s3.before_put")
                answer = self._client.put_object(
                    Bucket=self._bucket,
                    Key=self._prefix + key,
                    Body=data,
                    IfNoneMatch="*",
                    **self._extra(),
                )
                self._check(answer, "ETag")
            except ClientError as error:
                if _code(error) in _TAKEN:
                    # Without a lost answer before, a taken key is another writer's, even with the
                    # same bytes.
                    return unsure and self.get(key) == data
                unsure = unsure or _status(error) >= 500
                raise
            except BotoCoreError:
                unsure = True
                raise
            return True

        return self._try(f"write {key} to", put)

    def get(self, key: str) -> bytes:
        """See ``ObjectStore``."""

        def read() -> bytes:
            answer = self._client.get_object(Bucket=self._bucket, Key=self._prefix + key)
            self._check(answer, "ETag")
            body: bytes = answer["Body"].read()
            return body

        return self._try(f"read {key} from", read, missing=key)

    def list(self, prefix: str) -> Iterator[str]:
        """See ``ObjectStore``: pages of a thousand keys, each fetched when it is needed."""
        for key in self._listed(prefix, "Contents", "Key"):
            yield key[len(self._prefix) :]

    def retained_until(self, key: str) -> datetime | None:
        """When the object's retention (object lock) ends; None if it has none.

        Raises:
            ObjectMissing, ArchiveError: as for ``get``.
        """

        def head() -> datetime | None:
            answer = self._client.head_object(Bucket=self._bucket, Key=self._prefix + key)
            until: datetime | None = answer.get("ObjectLockRetainUntilDate")
            return until

        return self._try(f"read {key} from", head, missing=key, codes=_MISSING_HEAD)

    def folders(self, prefix: str) -> Iterator[str]:
        """See ``ObjectStore``."""
        for folder in self._listed(prefix, "CommonPrefixes", "Prefix", Delimiter="/"):
            yield folder[len(self._prefix + prefix) :].rstrip("/")

    def remove_try(self, key: str) -> None:
        """See ``Forgetting``: an identity that may not delete is no worse for it."""
        check_try(key)
        with suppress(BotoCoreError, ClientError):
            self._client.delete_object(Bucket=self._bucket, Key=self._prefix + key)

    def remove(self, key: str) -> None:
        """See ``Removing``.

        In a bucket with versions each of them goes: a mark of deletion alone would keep the bytes.
        """

        def versions() -> list[str | None]:
            listed = self._client.list_object_versions(
                Bucket=self._bucket, Prefix=self._prefix + key
            )
            self._check(listed, "IsTruncated")
            told = (*listed.get("Versions", ()), *listed.get("DeleteMarkers", ()))
            return [one.get("VersionId") for one in told if one["Key"] == self._prefix + key]

        for version in self._try(f"read {key} from", versions):
            which = {"VersionId": version} if version else {}

            def delete(which: dict[str, Any] = which) -> None:
                self._client.delete_object(Bucket=self._bucket, Key=self._prefix + key, **which)

            self._try(f"remove {key} from", delete)

    def __str__(self) -> str:
        address = f"s3://{self._bucket}/{self._prefix}".rstrip("/")
        # It is handed out: who opens it without its endpoint would look at AWS.
        return f"{address}?{urlencode(self._options, safe=':/')}" if self._options else address

    def _listed(self, prefix: str, kind: str, name: str, **arguments: str) -> Iterator[str]:
        whole = self._prefix + prefix
        for page in self._pages(prefix, **arguments):
            for entry in page.get(kind, ()):
                # Some servers take "//" for "/", and list what is elsewhere.
                if entry[name].startswith(whole):
                    yield entry[name]

    def _pages(self, prefix: str, **arguments: str) -> Iterator[dict[str, Any]]:
        token: str | None = None
        while True:
            more = {**arguments, "ContinuationToken": token} if token else arguments

            def page(more: dict[str, str] = more) -> dict[str, Any]:
                answer: dict[str, Any] = self._client.list_objects_v2(
                    Bucket=self._bucket, Prefix=self._prefix + prefix, **more
                )
                self._check(answer, "IsTruncated")
                return answer

            answer = self._try(f"list {prefix} of", page)
            yield answer
            if not answer.get("IsTruncated"):
                return
            before, token = token, answer.get("NextContinuationToken")
            # What is left out would be taken for what is not there, and one page has no end.
            if not token or token == before:
                raise ArchiveError(
                    f"s3://{self._bucket} lists a part of {self._prefix + prefix}, and says no more"
                    " of where the rest begins"
                )

    def _check(self, answer: dict[str, Any], field: str) -> None:
        """See that S3 answered, by a ``field`` that its answer always has: of a proxy's page with
        status 200 botocore makes one that says nothing, as of an archive without objects.

        Raises:
            ArchiveError: if it has not.
        """
        if field not in answer:
            raise ArchiveError(
                f"what answers for s3://{self._bucket} is no S3 (its answer has no {field}): is a"
                " proxy or a login page in between?"
            )

    def _try(
        self,
        what: str,
        call: Callable[[], T],
        *,
        missing: str | None = None,
        codes: Collection[str] = (_MISSING,),
    ) -> T:
        """Call until it succeeds, at most ``_TRIES`` times, with growing, jittered pauses (about 10
        s in all).
        """
        pause = _FIRST_PAUSE_S
        for attempt in range(1, _TRIES + 1):
            client = self._client
            try:
                return call()
            except ClientError as error:
                if missing is not None and _code(error) in codes:
                    raise ObjectMissing(
                        f"the archive has no object {missing} (in s3://{self._bucket})"
                    ) from None
                if _code(error) == _NO_BUCKET:
                    raise ArchiveError(
                        f"cannot {what} s3://{self._bucket}/{self._prefix}: there is no bucket"
                        f" {self._bucket!r} at {self._told(self._client.meta.endpoint_url)}"
                    ) from error
                renewed = _code(error) in _REFUSED and self._renewed(client)
                if attempt == _TRIES or not (renewed or _passing(error)):
                    raise self._failed(what, error) from error
            # botocore raises what Python does where an answer has a number or a time that is none.
            except (BotoCoreError, OSError, ValueError) as error:
                if attempt == _TRIES or not _connection(error):
                    raise self._failed(what, error) from error
            # Jittered, or the workers that one overload hit would come back together.
            time.sleep(pause * random.uniform(0.5, 1.0))
            pause = min(pause * 2, _LONGEST_PAUSE_S)
        raise AssertionError("unreachable")

    def _renewed(self, refused: Any) -> bool:
        """Whether there is another client than the one whose credentials were ``refused``."""
        # Of several threads that are refused one is the first.
        with self._renewing:
            if self._client is refused and self._credentials is not None:
                self._client = self._credentials.renewed() or refused
            return self._client is not refused

    def _failed(self, what: str, error: Exception) -> ArchiveError:
        # botocore tells of some mistakes on several lines.
        told = self._told(" ".join(str(error).split()).replace(_ONE_TRY, ""))
        if isinstance(error, ClientError) and not _code(error):
            told = f"status {_status(error)}, in no words of S3's: is a proxy in between?"
        return ArchiveError(f"cannot {what} s3://{self._bucket}/{self._prefix}: {told}")

    def _told(self, text: str) -> str:
        """Without the user and the password that the endpoint's URL may have."""
        user, at, _ = urlsplit(self._client.meta.endpoint_url).netloc.rpartition("@")
        return text.replace(user + at, "") if at else text


class _Credentials:
    """Those of a store with these ``options``.

    boto3 reads a profile's file once. Whoever changes the keys there means also what runs.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = options
        self._known: object = None

    def client(self) -> Any:
        """A client with those that hold now.

        Raises:
            BotoCoreError, ValueError, OSError: if there can be none.
        """
        return self._client(self._session())

    def renewed(self) -> Any | None:
        """A client with those that hold now, if they are others than the last one's."""
        try:
            session = self._session()
            return None if _lasting(session) in {None, self._known} else self._client(session)
        # As of a file that is being written: what was known may hold yet.
        except (BotoCoreError, ValueError, OSError):
            return None

    def _session(self) -> boto3.session.Session:
        return boto3.session.Session(
            profile_name=self._options.get("profile"), region_name=self._options.get("region")
        )

    def _client(self, session: boto3.session.Session) -> Any:
        client = session.client(
            "s3", endpoint_url=self._options.get("endpoint_url"), config=_config(self._options)
        )
        client.meta.events.register("before-call.s3.HeadBucket", _redirected)
        self._known = _lasting(session)
        return client


def _redirected(context: dict[str, Any], **_: Any) -> None:
    """Have botocore follow no redirect of its own question where a bucket is that it was redirected
    from: of a proxy that sends everything elsewhere it asks without end.
    """
    context.setdefault("s3_redirect", {})["redirected"] = True


def _lasting(session: boto3.session.Session) -> object:
    """The session's credentials; None if there are none, or those that are changed in time by
    themselves, as a role's.
    """
    credentials = session.get_credentials()
    return credentials.get_frozen_credentials() if type(credentials) is Credentials else None


def _without_user(options: dict[str, str]) -> dict[str, str]:
    """Options without the user and the password that the endpoint's URL may have."""
    if "endpoint_url" not in options:
        return options
    parts = urlsplit(options["endpoint_url"])
    endpoint = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
    return {**options, "endpoint_url": endpoint}


def _config(options: Mapping[str, str]) -> Config:
    # botocore's own retries are off: a conditional write must know of each of its tries.
    return Config(
        connect_timeout=_CONNECT_TIMEOUT_S,
        read_timeout=_READ_TIMEOUT_S,
        retries={"total_max_attempts": 1, "mode": "standard"},
        max_pool_connections=50,
        s3={
            "addressing_style": (
                "path" if options.get("path_style", "").lower() in {"1", "true"} else "auto"
            )
        },
    )


def _put_arguments(url: str, options: dict[str, str]) -> Callable[[], dict[str, Any]]:
    """What the address's encryption and retention options add to each write; the retention date is
    made anew.
    """
    fixed: dict[str, Any] = {}
    if "sse" in options:
        fixed["ServerSideEncryption"] = options["sse"]
    if "sse_key" in options:
        fixed["SSEKMSKeyId"] = options["sse_key"]
    if ("lock" in options) != ("lock_days" in options):
        raise InputError(
            f"{url!r}: lock and lock_days go together, as in lock=COMPLIANCE&lock_days=365"
        )
    if "lock" not in options:
        return lambda: fixed
    number = whole_number(options["lock_days"], _MOST_LOCK_DAYS)
    if options["lock"] not in {"COMPLIANCE", "GOVERNANCE"} or not number:
        raise InputError(
            f"{url!r}: lock is COMPLIANCE or GOVERNANCE, lock_days a number of days from 1 to"
            f" {_MOST_LOCK_DAYS}"
        )
    days = timedelta(days=number)
    # Made at each write: a date that was fixed at start would shorten as a worker grows old.
    return lambda: (
        fixed
        | {
            "ObjectLockMode": options["lock"],
            "ObjectLockRetainUntilDate": datetime.now(UTC) + days,
            # S3 refuses a write with a lock that has no checksum.
            "ChecksumAlgorithm": "SHA256",
        }
    )


def _code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def _status(error: ClientError) -> int:
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def _passing(error: ClientError) -> bool:
    """Errors that another try may not see: overload, trouble inside, and a racing conditional write
    (409).
    """
    return (
        _status(error) in {409, 429}
        or _status(error) >= 500
        or _code(error) in {"SlowDown", "RequestTimeout"}
    )


def _connection(error: Exception) -> bool:
    """Connection trouble, timeouts and bytes that changed on their way, and not a mistake in the
    settings (no credentials, no region).
    """
    name = type(error).__name__
    return isinstance(error, OSError) or any(
        word in name
        for word in (
            *("Connection", "Timeout", "HTTPClient", "Response", "Endpoint", "Incomplete"),
            "Checksum",
        )
    )
