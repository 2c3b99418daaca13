"""What vouches for a chain from outside: witnesses, signatures by trusted keys, object lock."""

from __future__ import annotations

import uuid

import boto3
import pytest
from archive_jobs import eventful_job
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from s3_server import S3Server

from runtime.archive.anchors import run_anchors
from runtime.archive.findings import Fault
from runtime.archive.forms import NewEnd, Signature
from runtime.archive.signing import fingerprint, signer_of, signer_with, trusted_keys
from runtime.archive.stores import MemoryStore, open_store
from runtime.archive.verify import damage, verify_job

PRIVATE = Ed25519PrivateKey.from_private_bytes(b"7" * 32)
SEED = "Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc="
PUBLIC = trusted_keys((), {"HOLDFAST_SIGNING_KEY": SEED})


def test_nothing_vouches_for_a_chain_alone() -> None:
    """Without anything outside, each run is self-attested; its head is its end, or its last
    step.
    """
    written = eventful_job(MemoryStore())
    a, b = run_anchors(written.archive, frozenset())
    assert (a.run, a.head, a.turn, a.ended, a.anchored) == (
        "a",
        written.refs["a", 34].key,
        34,
        False,
        False,
    )
    assert (b.run, b.head, b.turn, b.ended, b.anchored) == (
        "b",
        written.heads["b"].key,
        35,
        True,
        False,
    )


def test_a_witness_of_the_head_vouches_for_the_whole() -> None:
    """A witness of earlier steps vouches for those alone."""
    written = eventful_job(MemoryStore())
    a, b = run_anchors(
        written.archive, frozenset(), [written.refs["a", 33], *written.heads.values()]
    )
    assert a.anchored and b.anchored
    a, b = run_anchors(written.archive, frozenset(), [written.refs["a", 33]])
    assert not a.anchored and not b.anchored
    assert [(anchor.whole, anchor.detail) for anchor in a.anchors] == [
        (False, "it holds the digests of 1 steps, the last of turn 33")
    ]


def test_a_signature_vouches_where_its_key_is_trusted() -> None:
    """The end is signed as it is written; the key is trusted by its public half or by the signing
    key itself.
    """
    written = eventful_job(MemoryStore())
    archive = written.archive
    signer = signer_of({"HOLDFAST_SIGNING_KEY": SEED})
    archive.write_end(
        NewEnd(run="a", turn=34, parent=written.refs["a", 34], status="cancelled"), signer
    )
    assert damage(verify_job(archive, [written.heads["b"]])) == []
    trusted, _ = run_anchors(archive, PUBLIC)
    assert (trusted.anchored, trusted.untrusted) == (True, None)
    stranger, _ = run_anchors(
        archive, trusted_keys((), {"HOLDFAST_SIGNING_KEY": SEED.replace("N", "M")})
    )
    assert (stranger.anchored, stranger.untrusted) == (False, fingerprint(next(iter(PUBLIC))))
    assert signer_of({}) is None
    assert signer_with(PRIVATE)(b"x") == signer(b"x") if signer else False


@pytest.mark.parametrize("public_key", ["x", "ü", next(iter(PUBLIC))])
def test_a_signature_that_is_none_names_nobody(public_key: str) -> None:
    """Whatever stands in the place of its key, the job is verified, and the end is told as
    altered.
    """
    written = eventful_job(MemoryStore())
    forged = Signature(algorithm="ed25519", public_key=public_key, value="y")
    end = written.archive.write_end(
        NewEnd(run="a", turn=34, parent=written.refs["a", 34], status="cancelled"),
        lambda _: forged,
    )
    told, _ = run_anchors(written.archive, PUBLIC)
    assert (told.head, told.anchored, told.untrusted) == (end.key, False, None)
    assert [(one.fault, one.key) for one in damage(verify_job(written.archive))] == [
        (Fault.ALTERED, end.key)
    ]


@pytest.mark.slow
@pytest.mark.s3
@pytest.mark.usefixtures("aws")
def test_object_lock_vouches_until_its_end(s3_server: S3Server) -> None:
    """A store with retention says until when the head can neither be overwritten nor removed; one
    without, nothing.
    """
    bucket = f"locked-{uuid.uuid4().hex[:8]}"
    client = boto3.client("s3", endpoint_url=s3_server.endpoint, region_name="us-east-1")
    client.create_bucket(Bucket=bucket, ObjectLockEnabledForBucket=True)
    address = f"s3://{bucket}/p?endpoint_url={s3_server.endpoint}&region=us-east-1&path_style=1"
    archive = eventful_job(open_store(f"{address}&lock=COMPLIANCE&lock_days=1")).archive
    for run in run_anchors(archive, frozenset()):
        assert [(anchor.kind, anchor.whole) for anchor in run.anchors] == [("object-lock", True)]
    plain = eventful_job(open_store(s3_server.url(uuid.uuid4().hex))).archive
    assert not any(run.anchored for run in run_anchors(plain, frozenset()))
