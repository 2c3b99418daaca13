"""The S3 store against a real server: outages, lost answers, options, and errors that say what is
wrong.
"""

from __future__ import annotations

import random
import time
import uuid
from pathlib import Path

import boto3
import pytest
from archive_jobs import Written, chat, eventful_job, write_run
from botocore.exceptions import ReadTimeoutError
from s3_server import BUCKET, KEY, SECRET, S3Server

from runtime.archive.job import JobArchive
from runtime.archive.lifecycle.deletion import refusals
from runtime.archive.stores import MemoryStore, open_existing, open_store
from runtime.archive.stores.s3 import S3Store
from runtime.archive.verify import verify_job
from runtime.base.errors import ArchiveError

pytestmark = [pytest.mark.s3, pytest.mark.usefixtures("aws")]


@pytest.mark.smoke
def test_a_put_whose_answer_was_lost_counts_as_ours(s3_server: S3Server) -> None:
    """When the server stored the object and the answer never came, the next try finds its own
    bytes: it was written.
    """
    store = S3Store.from_url(s3_server.url(uuid.uuid4().hex))
    put, lost = store._client.put_object, []

    def answer_lost(**arguments: object) -> object:
        answer = put(**arguments)
        if not lost:
            lost.append(answer)
            raise ReadTimeoutError(endpoint_url=s3_server.endpoint)
        return answer

    store._client.put_object = answer_lost
    assert store.put_if_absent("a", b"mine")
    assert lost and store.get("a") == b"mine"
    assert not store.put_if_absent("a", b"mine")


def test_an_archive_is_opened_by_what_it_is_called(s3_server: S3Server) -> None:
    """Whoever is handed its address, as in a job's result, finds it on its own server."""
    store = open_store(s3_server.url(uuid.uuid4().hex))
    store.put_if_absent("a/b/c", b"mine")
    assert open_existing(str(store)).get("a/b/c") == b"mine"


def test_a_job_outlives_a_server_that_goes_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server is killed in mid-job and started again after a write has failed: writes wait for
    it, nothing is lost, verification is clean. Nothing of the server is left outside its folder.
    """
    server = S3Server(tmp_path / "s3")
    server.start()
    sleep, pauses = time.sleep, 0

    def pause(seconds: float) -> None:
        nonlocal pauses
        pauses += 1
        if pauses == 1:
            # Here and not in another thread: how long a start takes is not what is tested.
            server.start()
        sleep(seconds)

    try:
        store = open_store(server.url("outage"))
        written = Written(JobArchive(store, "b", "j"))
        parent = write_run(written, "r", range(1, 4), None, chat(random.Random(1)))
        server.kill()
        monkeypatch.setattr("runtime.archive.stores.s3.time.sleep", pause)
        write_run(written, "r", range(4, 7), parent, chat(random.Random(2)))
        assert pauses
        assert (
            verify_job(
                JobArchive(open_store(server.url("outage")), "b", "j"), written.heads.values()
            )
            == []
        )
        assert server.outside()
    finally:
        server.kill()
    assert server.outside() == []


def test_an_endpoint_without_a_server_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """When nothing answers, opening fails after the tries with the store's address in the
    message.
    """
    monkeypatch.setattr("runtime.archive.stores.s3._FIRST_PAUSE_S", 0.001)
    with pytest.raises(ArchiveError, match="cannot write _holdfast/archive to s3://bucket/p/"):
        open_store("s3://bucket/p?endpoint_url=http://127.0.0.1:9&region=us-east-1")


def test_wrong_credentials_are_not_tried_again(
    s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A refusal is reported at once, in the server's words."""
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    monkeypatch.setattr(
        "runtime.archive.stores.s3.time.sleep", lambda _: pytest.fail("it tried again")
    )
    with pytest.raises(ArchiveError, match="SignatureDoesNotMatch"):
        open_store(s3_server.url("refused"))


def test_a_profile_is_read_again_when_its_keys_are_refused(
    s3_server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker outlasts a change of keys in the shared file: it reads and writes with the new ones,
    with the bytes as they were. While no others are there the refusal is told at once.
    """
    for name in "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY":
        monkeypatch.delenv(name)
    file = tmp_path / "credentials"
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    monkeypatch.setattr("runtime.archive.stores.s3.time.sleep", lambda _: None)

    def keys(secret: str) -> None:
        file.write_text(f"[default]\naws_access_key_id={KEY}\naws_secret_access_key={secret}\n")

    # The server takes one pair alone: the other is the one that it refuses by now.
    keys("old")
    stores = [S3Store.from_url(s3_server.url(uuid.uuid4().hex)) for _ in range(2)]
    for store in stores:
        with pytest.raises(ArchiveError, match="SignatureDoesNotMatch"):
            store.get("a")
    file.write_text("[def")
    with pytest.raises(ArchiveError, match="SignatureDoesNotMatch"):
        stores[0].get("a")
    keys(SECRET)
    assert stores[0].put_if_absent("a", b"mine")
    assert not stores[0].put_if_absent("a", b"yours")
    assert stores[0].get("a") == b"mine"
    assert list(stores[1].list("")) == []


def test_no_password_of_the_endpoint_is_told(
    monkeypatch: pytest.MonkeyPatch, s3_server: S3Server
) -> None:
    """What goes wrong is told in heartbeats, and on other screens."""
    monkeypatch.setattr("runtime.archive.stores.s3._FIRST_PAUSE_S", 0.001)
    url, user = s3_server.url("p"), "http://user:topsecret@"
    gone = url.replace(s3_server.endpoint, f"{user}127.0.0.1:9")
    other = url.replace(BUCKET, "tpyo", 1).replace("http://", user)
    for store in map(S3Store.from_url, (gone, other)):
        with pytest.raises(ArchiveError) as caught:
            store.get("a")
        assert "user" not in str(caught.value) and "topsecret" not in str(caught.value)


def test_a_bucket_that_there_is_not_is_told_plainly(s3_server: S3Server) -> None:
    """And where it was looked for: at another endpoint there may be one."""
    store = S3Store.from_url(s3_server.url("p").replace(BUCKET, "tpyo", 1))
    words = f"s3://tpyo/p/: there is no bucket 'tpyo' at {s3_server.endpoint}"
    with pytest.raises(ArchiveError, match=words):
        store.get("a")


def test_retention_and_encryption_are_passed_through(s3_server: S3Server) -> None:
    """``lock`` and ``sse`` in the address reach the server: the object is retained until the
    day.
    """
    client = boto3.client("s3", endpoint_url=s3_server.endpoint, region_name="us-east-1")
    client.create_bucket(Bucket="locked", ObjectLockEnabledForBucket=True)
    url = s3_server.url("p").replace(BUCKET, "locked") + "&lock=GOVERNANCE&lock_days=30&sse=AES256"
    store = S3Store.from_url(url)
    arguments = store._extra()
    assert arguments["ServerSideEncryption"] == "AES256"
    plain = S3Store.from_url(url.replace("&sse=AES256", ""))
    assert plain.put_if_absent("kept", b"x")
    head = client.head_object(Bucket="locked", Key="p/kept")
    assert head["ObjectLockMode"] == "GOVERNANCE"
    assert (
        abs(
            (
                head["ObjectLockRetainUntilDate"] - arguments["ObjectLockRetainUntilDate"]
            ).total_seconds()
        )
        < 60
    )


@pytest.mark.parametrize("loose", ["/ends/", "/turns/", "/definition/"])
def test_a_job_of_which_the_bucket_keeps_anything_is_not_deleted(
    s3_server: S3Server, loose: str
) -> None:
    """Whatever of it is not locked: its end, where the lock was for more days before that. Nothing
    is removed, and no tombstone is written. Where nothing is locked, the job goes.
    """
    client = boto3.client("s3", endpoint_url=s3_server.endpoint, region_name="us-east-1")
    bucket = f"kept-{uuid.uuid4().hex}"
    client.create_bucket(Bucket=bucket, ObjectLockEnabledForBucket=True)
    url = s3_server.url("p").replace(BUCKET, bucket)
    plain, locking = (S3Store.from_url(url + lock) for lock in ("", "&lock=COMPLIANCE&lock_days=9"))
    eventful_job(made := MemoryStore())
    for key in made.list(""):
        (plain if loose in key else locking).put_if_absent(key, made.get(key))
    assert refusals(plain, ["nightly/licences"], {})["nightly/licences"].startswith(
        "it is locked by the bucket until "
    )
    assert list(plain.list("nightly/")) == list(made.list("nightly/"))
    free = S3Store.from_url(s3_server.url("free").replace(BUCKET, bucket))
    for key in made.list(""):
        free.put_if_absent(key, made.get(key))
    assert refusals(free, ["nightly/licences"], {}) == {}


def test_a_listing_goes_over_its_pages(
    s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys beyond the server's page are fetched too, in order."""
    store = S3Store.from_url(s3_server.url(uuid.uuid4().hex))
    page = store._client.list_objects_v2
    store._client.list_objects_v2 = lambda **arguments: page(**arguments, MaxKeys=7)
    names = [f"turns/{n:07d}" for n in range(30)]
    for name in names:
        store.put_if_absent(name, b".")
    assert list(store.list("turns/")) == names


def test_a_prefix_that_the_server_takes_for_another_is_told(s3_server: S3Server) -> None:
    """SeaweedFS takes ``//`` for ``/``, and lists nothing below it: as an archive without jobs."""
    url = s3_server.url(f"{uuid.uuid4().hex}//a")
    for opened in open_store, open_existing:
        with pytest.raises(ArchiveError, match="does not list what it has"):
            opened(url)


def test_a_server_that_lists_one_page_again_and_again_is_told(s3_server: S3Server) -> None:
    """As one does that does not know where a page is to begin: such a listing has no end."""
    store = S3Store.from_url(s3_server.url(uuid.uuid4().hex))
    page = store._client.list_objects_v2
    for n in range(3):
        store.put_if_absent(f"turns/{n}", b".")

    def first(**arguments: str) -> object:
        arguments.pop("ContinuationToken", None)
        return page(**arguments, MaxKeys=1)

    store._client.list_objects_v2 = first
    listing = store.list("turns/")
    assert [next(listing), next(listing)] == ["turns/0"] * 2
    with pytest.raises(ArchiveError, match="says no more of where the rest begins"):
        next(listing)
