"""Jobs files: what a user asks for, checked and resolved.

``models`` holds the frozen values that travel to workflow code and imports nothing but pydantic.
Everything that reads files, knows YAML or imports tools is in the other modules of this package;
import those by their own names, so that workflow code never pays for them.
"""

from runtime.spec.models import BatchSpec, Budget, JobSpec, ModelSettings, ToolSpec

__all__ = ["BatchSpec", "Budget", "JobSpec", "ModelSettings", "ToolSpec"]
