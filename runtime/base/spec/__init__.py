"""What a job is, resolved: the frozen values that travel to workflow code and into the archive.

They import pydantic and other values alone. What reads them from a file is ``runtime.jobsfile``.
"""

from runtime.base.spec.models import BatchSpec, Budget, JobSpec, ModelSettings, ToolSpec

__all__ = ["BatchSpec", "Budget", "JobSpec", "ModelSettings", "ToolSpec"]
