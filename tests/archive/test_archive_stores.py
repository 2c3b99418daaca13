"""Every object store keeps the same promises: put if absent, get, list."""

from __future__ import annotations

import base64
import io
import random
import re
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from botocore.awsrequest import AWSResponse, HTTPHeaders
from urllib3 import HTTPResponse

from runtime.archive.stores import (
    MemoryStore,
    ObjectStore,
    check_store,
    open_existing,
    open_store,
)
from runtime.archive.stores.s3 import S3Store
from runtime.base.errors import ArchiveError, InputError, ObjectMissing


def test_what_is_put_is_got(store: ObjectStore) -> None:
    """An object comes back byte for byte, also an empty one and one of several megabytes."""
    for name, data in (
        ("empty", b""),
        ("a/b/c", bytes(range(256))),
        ("large", random.Random(1).randbytes(3 << 20)),
    ):
        assert store.put_if_absent(name, data)
        assert store.get(name) == data


def test_a_taken_key_stays_as_it_is(store: ObjectStore) -> None:
    """A second put to a key says False and changes nothing, whether the bytes are equal or not."""
    data = b"first"
    assert store.put_if_absent("a/key", data)
    assert not store.put_if_absent("a/key", b"second")
    assert not store.put_if_absent("a/key", data)
    assert store.get("a/key") == data


def test_a_missing_object_is_an_error_of_its_own(store: ObjectStore) -> None:
    """``ObjectMissing`` names the key; a prefix of a key is no object."""
    store.put_if_absent("a/b", b"x")
    for key in ("nothing", "a", "a/b/c"):
        with pytest.raises(ObjectMissing, match=key):
            store.get(key)


def test_list_is_in_the_order_of_the_keys(store: ObjectStore) -> None:
    """Keys come in lexicographic order across folders, and only those with the prefix."""
    names = [
        f"r/{n // 100:05d}/{n:07d}.{kind}"
        for n in (1, 2, 99, 100, 101, 1000)
        for kind in ("attempt-001", "step")
    ]
    for name in random.Random(2).sample(names, len(names)):
        store.put_if_absent(f"p/{name}", b".")
    for prefix in (
        "p/",
        "p/r/00000",
        "p/r/00001/",
        "p/r/00001/0000101.",
        "p/r/00001/0000101.s",
        "p/s",
        "none/",
    ):
        assert list(store.list(prefix)) == sorted(
            f"p/{n}" for n in names if f"p/{n}".startswith(prefix)
        )


def test_list_has_every_key_with_the_prefix(store: ObjectStore) -> None:
    """A prefix may end within a name, and names may be each other's beginnings."""
    names = ["a/2", "a/10", "a-b/1", "a.b/1", "a/1/x", "a/1.x", "a/1-x", "ab/1", "b"]
    for name in names:
        store.put_if_absent(f"p/{name}", b".")
    for prefix in ("p/", "p/a", "p/a/", "p/a/1", "p/b", "p/a-", "none"):
        assert sorted(store.list(prefix)) == sorted(
            f"p/{n}" for n in names if f"p/{n}".startswith(prefix)
        )


def test_of_many_writers_one_wins(store: ObjectStore) -> None:
    """When many threads put one key at once, exactly one is told that it wrote it, and its bytes
    are there.
    """
    values = [f"writer {n}".encode() for n in range(16)]
    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(lambda value: store.put_if_absent("race", value), values))
    assert won.count(True) == 1
    assert store.get("race") == values[won.index(True)]


def test_a_store_that_overwrites_is_refused() -> None:
    """At start-up, a store that ignores conditional writes is found out, in one clear error."""

    class Overwriting(MemoryStore):
        def put_if_absent(self, key: str, data: bytes) -> bool:
            if not super().put_if_absent(key, data):
                self.replace(key, data)
            return True

    with pytest.raises(ArchiveError, match="overwrites objects"):
        check_store(Overwriting(), "s3://somewhere")


@pytest.mark.parametrize(
    "marker",
    [
        pytest.param(b'{"archive":"holdfast","format":3}', id="format"),
        pytest.param(b"[" * 100_000, id="nested"),
    ],
)
def test_a_prefix_with_another_format_is_refused(marker: bytes) -> None:
    """An archive of another format, or something else under the same name, is not written to."""
    taken = MemoryStore()
    taken.put_if_absent("_holdfast/archive", marker)
    with pytest.raises(ArchiveError, match="something else"):
        check_store(taken, "here")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("s3://b?region=eu-west-1", "s3://b?region=eu-west-1"),
        (
            "s3://b/p/?endpoint_url=http://127.0.0.1:9000&region=x&path_style=1",
            "s3://b/p?endpoint_url=http://127.0.0.1:9000&region=x&path_style=1",
        ),
        (
            "s3://b/p?region=x&sse=aws:kms&sse_key=a%26b&lock=COMPLIANCE&lock_days=9",
            "s3://b/p?region=x&sse=aws:kms&sse_key=a%26b&lock=COMPLIANCE&lock_days=9",
        ),
        (
            "s3://b/p?region=x&endpoint_url=http://user:secret@minio:9000",
            "s3://b/p?region=x&endpoint_url=http://minio:9000",
        ),
    ],
)
def test_an_s3_store_tells_the_whole_address(url: str, told: str) -> None:
    """With the options that lead to it, and no credentials: results and memos hand it out."""
    assert str(S3Store.from_url(url)) == told


@pytest.mark.slow
@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("lock=COMPLIANCE&lock_days=99999999999", "lock_days a number of days from 1 to 36500"),
        ("lock=COMPLIANCE&lock_days=0", "lock_days a number of days from 1 to 36500"),
        ("lock=COMPLIANCE&lock_days=²", "lock_days a number of days from 1 to 36500"),
        ("sse=\udcff", "is no archive store: it is no UTF-8"),
    ],
)
def test_an_address_of_s3_that_is_none(query: str, said: str) -> None:
    """Refused before anything is asked."""
    with pytest.raises(InputError, match=said):
        S3Store.from_url(f"s3://b/p?region=x&{query}")


class ListsAPart:
    """A client of S3 whose server says that there is more, and not where."""

    def list_objects_v2(self, **_: Any) -> dict[str, Any]:
        return {"Contents": [{"Key": "a/b"}], "IsTruncated": True}


def test_a_part_of_a_list_is_not_taken_for_all_of_it() -> None:
    """What it leaves out would count as what is not there."""
    with pytest.raises(ArchiveError, match="s3://bucket lists a part of a/"):
        list(S3Store(ListsAPart(), "bucket").list("a/"))


@pytest.fixture
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some that lead nowhere."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")


def answered(*bodies: bytes, status: int = 200, **headers: str) -> S3Store:
    """A store whose server answers everything with the ``status`` and the next of these bytes, at
    last always the same.
    """
    store = S3Store.from_url("s3://bucket/a?region=us-east-1&endpoint_url=http://127.0.0.1:9")
    left = list(bodies)

    def answer(**_: object) -> AWSResponse:
        body = left.pop(0) if len(left) > 1 else left[0]
        raw = HTTPResponse(io.BytesIO(body), headers=headers, preload_content=False)
        told = HTTPHeaders()
        for name, value in headers.items():
            told[name] = value
        return AWSResponse("http://127.0.0.1:9", status, told, raw)

    store._client.meta.events.register("before-send.s3", answer)
    return store


LISTING = b"<ListBucketResult><Name>bucket</Name>%s</ListBucketResult>"


@pytest.mark.usefixtures("credentials")
@pytest.mark.parametrize(
    "body",
    [b"", b"<html><body>Log in</body></html>", b"<Captive/>", LISTING % b"<KeyCount>0</KeyCount>"],
    ids=["nothing", "a page", "other XML", "a listing that does not say whether it is whole"],
)
def test_what_is_no_answer_of_s3_is_no_empty_archive(body: bytes) -> None:
    """A proxy's page with status 200: jobs that had succeeded would be begun anew, and what was to
    be archived would be lost.
    """
    # One for all: to make a client takes longer than all that it is asked.
    store = answered(body)
    calls: list[Callable[[], object]] = [
        lambda: list(store.list("")),
        lambda: list(store.folders("")),
        lambda: store.get("key"),
        lambda: store.put_if_absent("key", b"data"),
        lambda: store.remove("key"),
    ]
    for call in calls:
        with pytest.raises(ArchiveError, match="what answers for s3://bucket is no S3"):
            call()


@pytest.mark.usefixtures("credentials")
@pytest.mark.parametrize(
    ("body", "said"),
    [(b"", "Not Found"), (b"<html>none</html>", "status 404, in no words of S3's")],
    ids=["nothing", "a page"],
)
def test_a_proxy_that_finds_nothing_is_no_missing_object(body: bytes, said: str) -> None:
    """``verify`` would call it lost, and a worker make a call again whose reply is archived."""
    with pytest.raises(ArchiveError, match=f"^cannot read key from .*{said}") as told:
        answered(body, status=404).get("key")
    assert not isinstance(told.value, ObjectMissing)


@pytest.mark.usefixtures("credentials")
def test_a_proxy_that_sends_everything_elsewhere_is_told() -> None:
    """As to a login page: botocore looks for the bucket's region, and is sent there again."""
    store, asked = answered(b"<html>Log in</html>", status=302), []
    store._client.meta.events.register("before-send.s3", lambda **of: asked.append(of))
    with pytest.raises(ArchiveError, match=r"^cannot read key from .*status 302, in no words of"):
        store.get("key")
    assert len(asked) == 2


@pytest.mark.usefixtures("credentials")
def test_tries_that_were_not_one_are_not_told_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """botocore knows of its own, which is one of several."""
    monkeypatch.setattr("runtime.archive.stores.s3.time.sleep", lambda seconds: None)
    body = b"<Error><Code>SlowDown</Code><Message>Please reduce your rate.</Message></Error>"
    with pytest.raises(
        ArchiveError, match=r"\(SlowDown\) .* operation: Please reduce your rate\.$"
    ):
        answered(body, status=503).get("key")


@pytest.mark.usefixtures("credentials")
def test_a_listing_with_a_time_that_is_none() -> None:
    """An error of the archive, on one line."""
    entry = b"<Contents><Key>a/k</Key><LastModified>soon</LastModified></Contents>"
    store = answered(LISTING % (b"<IsTruncated>false</IsTruncated>" + entry))
    with pytest.raises(ArchiveError, match=r'^cannot list .*Invalid timestamp "soon"'):
        list(store.list(""))


@pytest.mark.usefixtures("credentials")
def test_what_changed_on_its_way_is_asked_for_again() -> None:
    """By the checksum that S3 sends with it."""
    checksum = base64.b64encode(zlib.crc32(b"data").to_bytes(4, "big")).decode()
    store = answered(b"dat!", b"data", **{"ETag": "1", "x-amz-checksum-crc32": checksum})
    assert store.get("key") == b"data"


@pytest.mark.usefixtures("credentials")
def test_a_bucket_that_can_have_no_such_name_is_told_on_one_line() -> None:
    """botocore takes two."""
    with pytest.raises(ArchiveError, match="Invalid bucket name") as told:
        S3Store.from_url("s3://B!/p?region=us-east-1").get("key")
    assert "\n" not in str(told.value)


@pytest.mark.usefixtures("credentials")
def test_a_listing_of_nothing_is_one() -> None:
    """Of an archive in which nothing is yet."""
    assert list(answered(LISTING % b"<IsTruncated>false</IsTruncated>").list("")) == []


@pytest.mark.parametrize(
    "url", ["", "ftp://host/x", "s3://", "s3://bucket/p?colour=red", "s3://b/p?lock=COMPLIANCE"]
)
def test_an_address_of_no_known_kind_is_bad_input(url: str) -> None:
    """What is neither a directory nor an S3 address, or has an unknown option, is an input
    error.
    """
    with pytest.raises(InputError):
        open_store(url)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("s3://b/issue#12?region=x", "no address has a '#'"),
        ("file:///a#b", "no address has a '#'"),
        ("file:///a?b", "nor that of a directory a '?'"),
        ("file://host/a", "or a host"),
        ("s3://b/p?region=x&lock", "the option lock has no value"),
        ("s3://b/p?region=x&sse=&sse_key=", "the option sse, sse_key has no value"),
    ],
)
def test_no_part_of_an_address_is_left_out(url: str, said: str) -> None:
    """What is left of it would lead to another archive, or to one that is neither locked nor
    encrypted.
    """
    with pytest.raises(InputError, match=re.escape(said)):
        open_store(url)


def test_a_directory_may_be_called_anything(tmp_path: Path) -> None:
    """By its path, or percent-encoded in a URL."""
    open_store(f"{tmp_path}//a#b?c").put_if_absent("x", b"1")
    assert open_existing(f"file://localhost{tmp_path}/a%23b%3Fc").get("x") == b"1"
