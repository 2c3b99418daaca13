"""``holdfast verify``: prove that nothing in the archive was altered or lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from runtime.cli.options import Address, Json, Namespace, Profile, Store
from runtime.cli.output import json_document, note, say
from runtime.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from runtime.archive.findings import Finding
    from runtime.archive.stores import ObjectStore
    from runtime.catalog import JobName
    from runtime.connection import Target
    from runtime.verification import JobVerdict

DIFFERENCE = 4
_SHOWN = 20


def command(
    job: Annotated[
        str | None,
        typer.Argument(
            metavar="[JOB]",
            help="BATCH/ID, any unique prefix of the id, or 'last', which is the default.",
            show_default=False,
        ),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Verify every job of the archive.")] = False,
    public_key: Annotated[
        list[str] | None,
        typer.Option(
            "--public-key",
            metavar="KEY",
            help="An ed25519 public key to trust (a file, or base64). Also: HOLDFAST_PUBLIC_KEY.",
            show_default=False,
        ),
    ] = None,
    address: Address = None,
    namespace: Namespace = None,
    profile: Profile = None,
    store: Store = None,
    json: Json = False,
) -> None:
    """Prove that nothing in a job's archive was altered or lost.

    Every object, the chain, each request put together anew. Compares with Temporal's history where that is in reach. Exit code 4 if anything is damaged. It says what outside the
    archive vouches for the chain: Temporal's history, a signature, object lock, or nothing.
    """
    if every and job is not None:
        raise InputError(f"--all verifies every job: leave out {job!r}, or leave out --all")
    import asyncio

    from runtime.archive.signing import trusted_keys
    from runtime.catalog import LAST, all_jobs, find_job
    from runtime.cli.stores import archive_to_read
    from runtime.connection import Target

    objects = archive_to_read(store)
    names = list(all_jobs(objects)) if every else [find_job(objects, job or LAST)]
    target = Target(address=address, namespace=namespace, profile=profile)
    trusted = trusted_keys(tuple(public_key or ()))
    verdicts = asyncio.run(_verified(objects, names, target, trusted, quiet=json))
    if json:
        clean = not any(verdict.damage for verdict in verdicts)
        json_document({"clean": clean, "jobs": [_document(verdict) for verdict in verdicts]})
    elif not verdicts:
        say("the archive has no jobs")
    if any(verdict.damage for verdict in verdicts):
        raise typer.Exit(DIFFERENCE)


async def _verified(
    objects: ObjectStore, names: list[JobName], target: Target, trusted: frozenset[str], *, quiet: bool
) -> list[JobVerdict]:
    from temporalio.service import RPCError

    from runtime.connection import connect_if_up
    from runtime.errors import ServerError
    from runtime.verification import verified

    verdicts: list[JobVerdict] = []

    async def each(client: Any) -> None:
        for name in names[len(verdicts) :]:
            verdicts.append(await verified(objects, name, client, trusted))
            if not quiet:
                _report(verdicts[-1])

    try:
        async with connect_if_up(target) as connection:
            if connection is None and names and not quiet:
                note("without Temporal's history: no server runs ('holdfast up' starts the embedded one)")
            await each(connection.client if connection is not None else None)
    except (ServerError, RPCError) as error:
        note(f"without Temporal's history: {error}")
        await each(None)
    return verdicts


def _report(verdict: JobVerdict) -> None:
    damage, notes = verdict.damage, verdict.notes
    say(f"{verdict.job}: {'clean' if not damage else f'{len(damage)} damaged'}")
    for finding in damage:
        say(f"  damaged: {finding}")
    shown = list(_together(notes))
    for line in shown[:_SHOWN]:
        say(f"  note: {line}")
    if len(shown) > _SHOWN:
        say(f"  note: {len(shown) - _SHOWN} more; --json lists them all")
    for run in verdict.runs:
        state = "" if run.ended else ", which has not ended"
        if run.anchored:
            how = "; ".join(f"{anchor.kind}: {anchor.detail}" for anchor in run.anchors if anchor.whole)
            say(f"  run {run.run}{state}: anchored by {how}")
        else:
            part = "".join(f"; in part by {anchor.kind}: {anchor.detail}" for anchor in run.anchors)
            signed = (
                f"; signed by {run.untrusted}, a key that is not trusted here: see --public-key"
                if run.untrusted
                else ""
            )
            say(f"  run {run.run}{state}: only self-attested{part}{signed}")


def _together(notes: Sequence[Finding]) -> Iterator[str]:
    """Notes, those that say the same of many turns of a run as one: a scripted model is noted at each of its turns."""
    alike: dict[tuple[str | None, str], list[Finding]] = {}
    for one in notes:
        alike.setdefault((one.run, one.message), []).append(one)
    for (run, message), found in alike.items():
        turns = [one.turn for one in found if one.turn is not None]
        if len(found) == 1 or len(turns) < len(found):
            yield from map(str, found)
        else:
            spans = ", ".join(f"{a} to {b}" if a != b else str(a) for a, b in _spans(turns))
            yield f"turns {spans} of run {run}: each {message}"


def _spans(turns: Sequence[int]) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    for turn in sorted(set(turns)):
        if spans and turn == spans[-1][1] + 1:
            spans[-1] = (spans[-1][0], turn)
        else:
            spans.append((turn, turn))
    return spans


def _document(verdict: JobVerdict) -> dict[str, Any]:
    return {
        "job": verdict.job,
        "damage": [finding.model_dump(mode="json") for finding in verdict.damage],
        "notes": [finding.model_dump(mode="json") for finding in verdict.notes],
        "runs": [{**run.model_dump(mode="json"), "anchored": run.anchored} for run in verdict.runs],
    }
