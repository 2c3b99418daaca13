"""A job's model options: those that Holdfast reads itself, and the rest, which are litellm's."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from temporalio.exceptions import ApplicationError

from activities._captured import Limits
from activities._failures import FailureKind
from activities.prices import Price, streams
from runtime.base.environment import environment
from runtime.base.errors import InputError
from runtime.base.own_headers import with_variables
from runtime.base.spec.models import Retry

_WHOLE = "aiohttp_openai/"
"""Models whose replies litellm cannot stream: what is asked for is what it can give."""


class ModelOptions(BaseModel):
    """What a model is called with.

    Times are in seconds; further options are keyword arguments of litellm's call.

    ``connect``, ``first_byte`` and ``stall`` bound the silence of a call, ``timeout`` the whole
    call. Without streaming the first byte comes with the whole reply, so ``first_byte`` is then
    ``timeout`` unless it is given. What is not given is as the job's ``retry`` says.
    """

    model_config = ConfigDict(frozen=True, extra="allow")

    name: str
    stream: bool = True
    timeout: float = Field(default=1800.0, gt=0)
    connect: float = Field(default=10.0, gt=0)
    first_byte: float | None = Field(default=None, gt=0)
    stall: float | None = Field(default=None, gt=0)
    price: Price | None = None
    """What the jobs file says that tokens cost; None: what litellm's table says."""

    @model_validator(mode="before")
    @classmethod
    def _without_streams(cls, data: Any) -> Any:
        name = str(data.get("name", "")) if isinstance(data, dict) else ""
        return (
            {**data, "stream": False}
            if name.startswith(_WHOLE) or (name and not streams(name))
            else data
        )

    def limits(self, retry: Retry) -> Limits:
        """How long a call of a job that is patient as ``retry`` says may be silent."""
        first_byte = self.first_byte or (retry.first_byte if self.stream else self.timeout)
        return Limits(connect=self.connect, first_byte=first_byte, stall=self.stall or retry.stall)

    @property
    def arguments(self) -> dict[str, Any]:
        """The options that litellm is given as they are."""
        return dict(self.model_extra or {})

    @property
    def tier(self) -> str | None:
        """The provider's tier of service that is asked for, by which prices differ."""
        tier = self.arguments.get("service_tier")
        return tier.lower() if isinstance(tier, str) else None


def options_of(model: dict[str, Any]) -> ModelOptions:
    """The options that a call names, with what its headers name of this worker's environment.

    Raises:
        ApplicationError: ``AuthenticationError``, if the environment has not what they name;
            ``BadRequestError``, if an option cannot be used.
    """
    try:
        return ModelOptions.model_validate(with_variables(model, environment()))
    except KeyError as error:
        words = f"this worker's environment has no {error.args[0]}, which the model's headers name"
        raise ApplicationError(words, type=FailureKind.AUTHENTICATION, non_retryable=True) from None
    except InputError as error:
        raise ApplicationError(
            str(error), type=FailureKind.BAD_REQUEST, non_retryable=True
        ) from None
    except ValidationError as error:
        problem = error.errors()[0]
        words = f"model option {'.'.join(map(str, problem['loc']))}: {problem['msg']}"
        raise ApplicationError(words, type=FailureKind.BAD_REQUEST, non_retryable=True) from None
