"""``holdfast verify``: prove that nothing in the archive was altered or lost."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import typer

from runtime.base.errors import InputError
from runtime.base.plurals import counted
from runtime.cli.completion import job_names
from runtime.cli.exit_codes import DIFFERENCE
from runtime.cli.options import ANY_SERVER, Json, Store
from runtime.cli.output import json_document, note, say
from runtime.server.target import Target

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from runtime.archive.findings import Finding
    from runtime.archive.stores import ObjectStore
    from runtime.base.values import JobKey
    from runtime.client.verification import Demands, JobVerdict

_SHOWN = 20


def command(
    job: Annotated[
        str | None,
        typer.Argument(
            metavar="[JOB]",
            help="BATCH/ID, any unique prefix of the id, or 'last', which is the default.",
            show_default=False,
            autocompletion=job_names,
        ),
    ] = None,
    every: Annotated[
        bool,
        typer.Option(
            "--all",
            help="Verify every job that the archive has, or should have, and what they share.",
        ),
    ] = False,
    require_anchor: Annotated[
        bool,
        typer.Option(
            "--require-anchor", help="Fail where nothing outside the archive vouches for a run."
        ),
    ] = False,
    head: Annotated[
        bool,
        typer.Option(
            "--head",
            help=(
                "Print the archive's head (a JOB's, if one is named), to keep elsewhere. It"
                " verifies first."
            ),
        ),
    ] = False,
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            metavar="HEAD-FILE",
            help="Verify that nothing which this head covers has vanished or changed.",
            show_default=False,
        ),
    ] = None,
    public_key: Annotated[
        list[str] | None,
        typer.Option(
            "--public-key",
            metavar="KEY",
            help=(
                "An ed25519 public key that must have signed (a file, or base64). Also to trust:"
                " HOLDFAST_PUBLIC_KEY."
            ),
            show_default=False,
        ),
    ] = None,
    target: Target = ANY_SERVER,
    store: Store = None,
    json: Json = False,
) -> None:
    """Prove that nothing in a job's archive was altered or lost.

    It checks every object, the chain, and each request, which it puts together anew; and whether
    all is there that should be, by Temporal's list and histories, where those are in reach, or by a
    head that was kept. Exit code 4 if anything is damaged or gone. It says what outside the archive
    vouches for the chain: Temporal's history, a signature, object lock, a kept head, or nothing.
    """
    if job is not None and (every or against is not None):
        option = "--all" if every else "--against"
        raise InputError(f"{option} verifies every job: leave out {job!r}, or leave out {option}")
    if head and json:
        raise InputError("--head prints a head, which is JSON already: leave out --json")
    import asyncio

    from runtime.archive.heads import read_head
    from runtime.archive.signing import trusted_keys
    from runtime.cli.stores import archive_to_read
    from runtime.client.verification import Demands

    objects = archive_to_read(store)
    trusted = trusted_keys(tuple(public_key or ()))
    # Those of the environment are trusted, but need not have signed.
    named_keys = trusted_keys(tuple(public_key or ()), {})
    kept = None if against is None else read_head(against, named_keys)
    demands = Demands(trusted, signed=bool(named_keys), anchored=require_anchor, head=kept)
    whole = every or kept is not None or (head and job is None)
    verdicts = asyncio.run(
        _Verification(objects, target, demands, job, whole, json or head).verdicts()
    )
    damaged = any(verdict.damage for verdict in verdicts)
    if json:
        jobs = [_document(verdict) for verdict in verdicts if verdict.job is not None]
        shared = [_document(verdict) for verdict in verdicts if verdict.job is None]
        json_document(
            {"clean": not damaged, "jobs": jobs, **({"shared": shared[0]} if shared else {})}
        )
    elif not verdicts and not head:
        say("the archive has no jobs")
    if head:
        _print_head(objects, verdicts, whole)
    if damaged:
        raise typer.Exit(DIFFERENCE)


@dataclass
class _Verification:
    """The verification of one JOB, or of the ``whole`` archive; reported as it goes on, unless
    ``quiet``.
    """

    objects: ObjectStore
    target: Target
    demands: Demands
    job: str | None
    whole: bool
    quiet: bool
    done: dict[JobKey, JobVerdict] = field(default_factory=dict)

    async def verdicts(self) -> list[JobVerdict]:
        """One for each job, and for the whole archive one for what jobs share."""
        from temporalio.service import RPCError

        from runtime.base.errors import ServerError
        from runtime.server.connection import connect_if_up

        try:
            async with connect_if_up(self.target) as connection:
                if connection is None and not self.quiet:
                    note(
                        "without Temporal's history: no server runs ('holdfast up' starts the"
                        " embedded one)"
                    )
                await self._each(connection.client if connection is not None else None)
        except (ServerError, RPCError) as error:
            note(f"without Temporal's history: {error}")
            # What was verified with the server's word stays; the others go without.
            await self._each(None)
        # A head names what jobs share also where none of them is left.
        shares = self.whole and (self.done or self.demands.head is not None)
        return list(self.done.values()) + (await self._shared() if shares else [])

    async def _each(self, client: Any) -> None:
        from runtime.client.verification import jobs_to_verify, verified

        if self.whole:
            names = await jobs_to_verify(self.objects, client, self.demands.head)
        else:
            names = [await self._named(client)]
        for name in names:
            if name not in self.done:
                self.done[name] = await verified(self.objects, name, client, self.demands)
                if not self.quiet:
                    _report(self.done[name])

    async def _named(self, client: Any) -> JobKey:
        """The job that was named: also one of which the archive has nothing any more, and which
        was deleted, or Temporal knows.
        """
        from runtime.archive.catalog import LAST, find_job
        from runtime.base.errors import NotFound
        from runtime.base.values import JobKey
        from runtime.client.verification import jobs_to_verify

        try:
            return find_job(self.objects, LAST if self.job is None else self.job)
        except NotFound:
            key = JobKey.named(self.job or "")
            if key is not None and key in await jobs_to_verify(self.objects, client, None):
                return key
            raise

    async def _shared(self) -> list[JobVerdict]:
        import asyncio

        from runtime.client.verification import shared_verdict

        verdict = await asyncio.to_thread(
            shared_verdict, self.objects, list(self.done.values()), self.demands.head
        )
        if not self.quiet and (verdict.damage or verdict.notes):
            _report(verdict)
        return [verdict]


def _print_head(objects: ObjectStore, verdicts: list[JobVerdict], whole: bool) -> None:
    """The head, of an archive that is whole; else what is wrong with it, on stderr."""
    from datetime import UTC, datetime

    from runtime.archive.catalog import known_archive_id
    from runtime.archive.heads import head_of, shared_digests
    from runtime.archive.signing import signer_of

    damage = [finding for verdict in verdicts for finding in verdict.damage]
    for finding in damage:
        note(f"damaged: {finding}")
    if damage:
        return
    head = head_of(
        [verdict.examination for verdict in verdicts if verdict.examination is not None],
        shared_digests(objects) if whole else {},
        archive=known_archive_id(objects),
        made_at=datetime.now(UTC).isoformat(),
        signer=signer_of(),
    )
    json_document(head.model_dump(mode="json"))


def _report(verdict: JobVerdict) -> None:
    damage, notes = verdict.damage, verdict.notes
    say(
        f"{verdict.job or 'what jobs share'}: {'clean' if not damage else f'{len(damage)} damaged'}"
    )
    for finding in damage:
        say(f"  damaged: {finding}")
    shown = list(_together(notes))
    for line in shown[:_SHOWN]:
        say(f"  note: {line}")
    if len(shown) > _SHOWN:
        say(f"  note: {len(shown) - _SHOWN} more; --json lists them all")
    if verdict.unnamed and verdict.job is not None:
        say(f"  {counted(verdict.unnamed, 'object')} named by no other, beside the heads of runs")
    for run in verdict.runs:
        state = "" if run.ended else ", of which no end is archived"
        if run.anchored:
            how = "; ".join(
                f"{anchor.kind}: {anchor.detail}" for anchor in run.anchors if anchor.whole
            )
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
    """Notes, those that say the same of many turns of a run as one: a scripted model is noted at
    each of its turns.
    """
    alike: dict[tuple[str | None, str], list[Finding]] = {}
    for one in notes:
        alike.setdefault((one.run, one.message), []).append(one)
    for (run, message), group in alike.items():
        turns = [one.turn for one in group if one.turn is not None]
        if len(group) == 1 or len(turns) < len(group):
            yield from map(str, group)
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
        "unnamed": verdict.unnamed,
        "runs": [{**run.model_dump(mode="json"), "anchored": run.anchored} for run in verdict.runs],
    }
