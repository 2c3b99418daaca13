"""The one data converter of all clients and workers: pydantic values as JSON, each payload signed
and checked.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NoReturn, Self, cast

from temporalio.api.common.v1 import Payload
from temporalio.api.failure.v1 import Failure
from temporalio.client import Client
from temporalio.contrib.pydantic import PydanticPayloadConverter
from temporalio.converter import (
    ActivitySerializationContext,
    DataConverter,
    DefaultFailureConverter,
    EncodingPayloadConverter,
    PayloadConverter,
    SerializationContext,
    WorkflowSerializationContext,
)
from temporalio.exceptions import ApplicationError

from runtime.base.characters import as_unicode
from runtime.server.authentic.codec import REASON, REFUSED, Refusal, SigningCodec
from runtime.server.authentic.encryption import EncryptionKeys
from runtime.server.authentic.key import PayloadKey


class NotSigned(ApplicationError):
    """A payload is not authentic.

    Where it is a workflow's order, or an activity's result, it ends the workflow.

    The SDK drops a signal and refuses an update or a query for any error in their payloads.
    """

    def __init__(self, message: str, refusal: Refusal) -> None:
        super().__init__(message, type="NotSigned", non_retryable=True)
        self.refusal = refusal


class _Refusing(EncodingPayloadConverter):
    """Raises for the payloads that stand in for refused ones, whatever type they are wanted as."""

    @property
    def encoding(self) -> str:
        """See ``EncodingPayloadConverter``."""
        return REFUSED

    def to_payload(self, value: Any) -> Payload | None:
        """No value is made into one."""
        return None

    def from_payload(self, payload: Payload, type_hint: type | None = None) -> NoReturn:
        """Raises:
        NotSigned: always.
        """
        raise NotSigned(
            payload.data.decode("utf-8", "replace"), Refusal[payload.metadata[REASON].decode()]
        )


class _Converter(PydanticPayloadConverter):
    """One for all.

    The SDK asks for a new one for each payload's context, and each would make its type adapters
    anew.
    """

    _one: _Converter | None = None

    def __new__(cls) -> _Converter:
        if _Converter._one is None:
            one = super().__new__(cls)
            PydanticPayloadConverter.__init__(one)
            one._set_converters(*one.converters.values(), _Refusing())
            _Converter._one = one
        return _Converter._one

    def __init__(self) -> None:
        """It is ready: ``__new__`` made it so."""


class _Failures(DefaultFailureConverter):
    """Tells a failure whose words have lone surrogates.

    Temporal takes no such text, and the SDK would tell of another failure, of no type, that may
    pass.
    """

    def to_failure(
        self, exception: BaseException, payload_converter: PayloadConverter, failure: Failure
    ) -> None:
        """See ``FailureConverter``; its causes come here too."""
        super().to_failure(_in_unicode(exception), payload_converter, failure)


class _EncodedFailures(_Failures):
    """Their messages as payloads."""

    def __init__(self) -> None:
        super().__init__(encode_common_attributes=True)


def _in_unicode(error: BaseException) -> BaseException:
    """The error itself, or one that says the same in text that has UTF-8."""
    words = error.message if isinstance(error, ApplicationError) else str(error)
    told = as_unicode(words)
    if told == words:
        return error
    if isinstance(error, ApplicationError):
        plain = ApplicationError(
            told,
            *error.details,
            type=error.type,
            non_retryable=error.non_retryable,
            next_retry_delay=error.next_retry_delay,
            category=error.category,
        )
    else:
        plain = ApplicationError(told, type=type(error).__name__)
    plain.__cause__ = error.__cause__
    return plain.with_traceback(error.__traceback__)


class _Placed(DataConverter):
    """Makes the converter of a place once.

    The SDK asks for it some twenty times a turn, of which five are about different places.
    """

    _MOST = 256

    def with_context(self, context: SerializationContext) -> Self:
        """See ``DataConverter``; whatever is at a place may have the same one."""
        made = self.__dict__.get("_made")
        if made is None:
            made = lru_cache(self._MOST)(super().with_context)
            # The SDK's converters are frozen.
            object.__setattr__(self, "_made", made)
        return cast(Self, made(context))


def signed_converter(key: PayloadKey, encryption: EncryptionKeys | None = None) -> DataConverter:
    """The data converter with which clients and workers that have ``key`` understand one another,
    and nobody else.

    With ``encryption``, what they say is for them alone, the messages of failures included.
    """
    codec = SigningCodec(key, encryption=encryption)
    return _Placed(
        payload_converter_class=_Converter,
        payload_codec=codec,
        failure_converter_class=_Failures if encryption is None else _EncodedFailures,
    )


def in_workflow(client: Client, workflow_id: str) -> DataConverter:
    """The client's converter for payloads that are read out of a workflow's history."""
    context = WorkflowSerializationContext(namespace=client.namespace, workflow_id=workflow_id)
    return client.data_converter.with_context(context)


def in_activity(client: Client, workflow_id: str, activity_id: str) -> DataConverter:
    """As ``in_workflow``, for what an activity was given, or gave."""
    return client.data_converter.with_context(place_of_activity(client, workflow_id, activity_id))


def place_of_activity(
    client: Client, workflow_id: str, activity_id: str
) -> ActivitySerializationContext:
    """What payloads of an activity are signed for, also where somebody else speaks for it."""
    return ActivitySerializationContext(
        namespace=client.namespace,
        activity_id=activity_id,
        activity_type=None,
        activity_task_queue=None,
        workflow_id=workflow_id,
        workflow_type=None,
        is_local=False,
    )
