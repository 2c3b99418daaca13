"""What a worker is made of: the activities, by the roles of those who do them, and what these go
through.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from temporalio.client import Client
from temporalio.worker import Interceptor

from activities import tracing
from activities.approvals import ApprovalActivities
from activities.batches import BatchActivities
from activities.bounds import Bounds
from activities.checking import CheckActivities
from activities.checkpoints import CheckpointActivities
from activities.cut_calls import CutCallActivities
from activities.finishing import FinishActivities
from activities.hands import HandsActivities
from activities.heartbeats import HeartbeatInterceptor
from activities.lifecycle import LifecycleActivities
from activities.metered import Metered
from activities.model import ModelActivities
from activities.plain_errors import PlainErrors
from activities.replays import ReplayActivities
from activities.sub_jobs import SubJobActivities
from activities.summaries import SummaryActivities
from activities.tools import ToolActivities
from activities.verdicts import record_verdict
from activities.versions import Versions
from activities.working_time import WorkingTime
from activities.workspace import WorkspaceActivities
from runtime.archive.stores import ObjectStore
from runtime.archive.trees import Trees
from runtime.base.home import state_home
from runtime.base.roles import EVERY, Role, Roles
from runtime.workspace.checkouts.checkout import Checkouts


@dataclass(frozen=True)
class Parts:
    """What a worker needs for jobs: their activities by who does them, what these go through, and
    the tools, which want to be closed. The activities of models and of tools are also done by
    workers on the queues of what is limited, those ``by_name`` by workers of the queues that tools
    name.
    """

    of_roles: Mapping[Role, list[Callable[..., Any]]]
    limited_tools: list[Callable[..., Any]]
    by_name: list[Callable[..., Any]]
    of_activities: list[Interceptor]
    tools: ToolActivities

    @property
    def activities(self) -> list[Callable[..., Any]]:
        """All, each once."""
        # The SDK refuses two of one name, and some are of several roles.
        return list(dict.fromkeys(one for some in self.of_roles.values() for one in some))


def make_parts(
    client: Client,
    store: ObjectStore,
    allowed: tuple[Path, ...] = (),
    workspaces: Path | None = None,
    roles: Roles = EVERY,
) -> Parts:
    """The parts of a worker that archives to ``store``.

    What jobs change is laid out below ``workspaces``, by default in the state directory. Without
    the role that has tools, none of it starts an MCP server.
    """
    store = tracing.traced(store)
    checkouts = Checkouts(workspaces or state_home().workspaces, Trees(store))
    versions = Versions(checkouts)
    model, tools = ModelActivities(store, versions.forget), ToolActivities(store, allowed)
    servers = tools.hosts if Role.TOOLS in roles else None
    workspace = WorkspaceActivities(store=store, versions=versions, hosts=servers)
    hands = HandsActivities(store, versions, tools.hosts)
    summaries = SummaryActivities(store, workspace, model)
    of_roles: dict[Role, list[Callable[..., Any]]] = {
        Role.TURNS: [model.end_job, summaries.keep_material, *_of_turns(client, store)],
        Role.MODELS: [
            *(model.call_model, model.summarise),
            *(summaries.summarise_source, summaries.summarise_group),
        ],
        Role.TOOLS: [
            tools.call_tool,
            tools.list_servers,
            FinishActivities(store).tell_finish,
            CheckActivities(checkouts, tools).check_result,
            hands.change_workspace,
            workspace.read_sources,
        ],
        Role.SANDBOXES: [hands.open_workspace, hands.change_workspace],
        Role.READS: [workspace.read_sources, workspace.file_call],
    }
    by_name: list[Callable[..., Any]] = [tools.call_tool, hands.change_workspace]
    return Parts(of_roles, [tools.call_tool], by_name, _through(allowed), tools)


def _of_turns(client: Client, store: ObjectStore) -> list[Callable[..., Any]]:
    """The activities of those who do turns that share nothing with any other's."""
    checkpoints, replays = CheckpointActivities(store), ReplayActivities(store, client)
    batches, sub_jobs = BatchActivities(store, client), SubJobActivities(store, client)
    return [
        LifecycleActivities(store).begin_job,
        ApprovalActivities(store).ask_approval,
        CutCallActivities(store).settle_call,
        record_verdict,
        checkpoints.save_checkpoint,
        checkpoints.load_checkpoint,
        replays.claim_replay,
        replays.recorded_turn,
        batches.read_batch_page,
        batches.follow_jobs,
        batches.definition_of_job,
        sub_jobs.spawn_job,
        sub_jobs.find_sub_jobs,
        sub_jobs.end_sub_jobs,
    ]


def _through(allowed: tuple[Path, ...]) -> list[Interceptor]:
    """What an activity goes through, the outermost first: so what ``Bounds`` refuses is made plain,
    and counted, as other errors are.
    """
    bounds = [Bounds(allowed)] if allowed else []
    counted = [HeartbeatInterceptor(), WorkingTime(), Metered(), PlainErrors(), *bounds]
    return [*tracing.interceptors(), *counted]
