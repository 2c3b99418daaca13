"""What the process loads from which commands are forked: all that a worker imports and makes as it
starts, with what litellm loads in the first call.

The garbage collector looks through none of it again, in any fork.
"""

import gc
from importlib import import_module

import typer

from activities.model import warm
from activities.prices import mode_of
from runtime.base.encodings import DEFAULT_ENCODING
from runtime.base.tokens import encoding
from runtime.cli.main import app

LOADED = (
    "benchmarks.blocks",
    "litellm.llms.openai.common_utils",
    "litellm.proxy.openai_files_endpoints.common_utils",
    "openai.resources",
    "runtime.cli.running",
    "runtime.cli.working",
    "runtime.client.preflight",
    "runtime.jobsfile.load",
    "runtime.worker.serving",
    "runtime.worker.worker",
    "tests.forks.crew",
    "tests.kill.experiments",
    "tests.servers.provider_server",
)

warm()
for module in LOADED:
    import_module(module)
typer.main.get_command(app)
mode_of("openai/local")
encoding(DEFAULT_ENCODING).count("")
gc.collect()
gc.freeze()
