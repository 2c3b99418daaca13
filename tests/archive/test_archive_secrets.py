"""Nothing secret is recorded, and every kind of object has a published schema."""

from __future__ import annotations

import jsonschema
import pytest
from archive_jobs import eventful_job, rich_archive, segment, step_record

from runtime.archive.allowed import allowed_headers, clean_model, clean_url
from runtime.archive.container import unseal
from runtime.archive.forms import Capture, NewAttempt, json_schemas
from runtime.archive.job import JobArchive
from runtime.archive.stores import MemoryStore
from runtime.base.errors import ObjectCorrupt
from runtime.base.redaction.marks import MASK
from runtime.projection.segments import Add, LayoutDelta

KEY = "sk-THE-SECRET-KEY"


def test_a_key_in_any_place_is_in_no_object() -> None:
    """Keys in headers, in the URL and in the model's options reach no object; what is harmless
    does.
    """
    store = MemoryStore()
    archive = JobArchive(store, "b", "j")
    attempt = archive.begin_attempt(
        NewAttempt(
            run="r", turn=1, parent=None, delta=LayoutDelta(parts=(Add(segment=segment("hi")),)), capture=Capture.WIRE,
            model={"name": "openai/x", "api_key": KEY, "max_tokens": 9, "extra_headers": {"X-Any": KEY, "Accept": "a/b"}},
            request=b"{}", url=f"https://user:{KEY}@host/v1?key={KEY}&alt=sse#{KEY}",
            headers={"Authorization": f"Bearer {KEY}", "X-Api-Key": KEY, "Content-Type": "application/json"},
            started_at="2026-01-01T00:00:00Z",
        )
    )  # fmt: skip
    record = step_record("r", 1, attempt)
    archive.finish_step(record.model_copy(update={"headers": {"content-type": "a/b"}}))
    for key in store.list(""):
        assert KEY not in unseal(key, store.get(key)).header_bytes.decode()
    found = archive.attempts("r", 1)[0]
    assert found.headers == {"content-type": "application/json"}
    assert found.url == f"https://host/v1?key={MASK}&alt=sse"
    assert found.model == {
        "name": "openai/x",
        "api_key": MASK,
        "max_tokens": 9,
        "extra_headers": {"accept": "a/b"},
    }


@pytest.mark.parametrize(
    "name",
    [
        "api_key",
        "apiKey",
        "azure_ad_token",
        "aws_secret_access_key",
        "vertex_credentials",
        "Authorization",
    ],
)
def test_options_that_look_secret_are_masked_at_any_depth(name: str) -> None:
    """A text under a secret-looking name is masked in nested options and lists; numbers are not
    texts.
    """
    assert clean_model({"a": [{"b": {name: KEY}}]}) == {"a": [{"b": {name: MASK}}]}
    assert clean_model({name: 5, "max_tokens": 7}) == {name: 5, "max_tokens": 7}


def test_headers_are_recorded_by_an_allow_list() -> None:
    """Only known headers are kept, names in lower case."""
    given = {
        "Cookie": KEY,
        "X-RateLimit-Remaining": "4",
        "anthropic-version": "1",
        "X-Unknown": "v",
        "Set-Cookie": KEY,
    }
    assert allowed_headers(given) == {"anthropic-version": "1", "x-ratelimit-remaining": "4"}
    assert clean_url("") == ""


@pytest.mark.slow
def test_every_object_fits_its_published_schema() -> None:
    """The headers of all kinds of objects that a job writes are valid against the JSON Schemas."""
    store = MemoryStore()
    rich_archive(store)
    schemas = json_schemas()
    kinds = set()
    for key in store.list("nightly/"):
        header = unseal(key, store.get(key)).header
        jsonschema.validate(header, schemas[header["kind"]])
        kinds.add(header["kind"])
    assert kinds == set(schemas)


def test_an_object_of_another_format_is_refused() -> None:
    """The format's version stands in every object; another one is an error that says so."""
    store = eventful_job(MemoryStore()).archive.store
    key = next(iter(store.list("")))
    with pytest.raises(
        ObjectCorrupt, match="of archive format 3: this release reads those up to 2"
    ):
        unseal(key, b"HFA\x03" + store.get(key)[4:])
    with pytest.raises(ObjectCorrupt, match="digest that they carry"):
        unseal(key, b"HFA\x01" + store.get(key)[4:])
    assert store.get(key).startswith(b"HFA\x02")
