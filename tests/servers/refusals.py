"""How providers refuse a prompt that is too long: status and body as each of them sends it, by
litellm's name for it.

Sources: the providers' references and source code where it is public, and error texts quoted in the
issues of litellm, OpenHands, LangChain and others. ``{tokens}`` and ``{window}`` stand for the
prompt's size and the model's limit.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Refusal:
    """One provider's answer to a prompt that is too long."""

    provider: str
    status: int
    template: Any

    def body(self, tokens: int, window: int) -> Any:
        """The response's JSON."""
        text = (
            json.dumps(self.template)
            .replace("{tokens}", str(tokens))
            .replace("{window}", str(window))
        )
        return json.loads(text)


def _openai(message: str, **more: Any) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error", **more}}


_EXCEEDED = {"param": "messages", "code": "context_length_exceeded"}
_MAXIMUM = (
    "This model's maximum context length is {window} tokens. However, your messages resulted in"
    " {tokens} tokens. Please reduce the length of the messages."
)
_REQUESTED = (
    "This model's maximum context length is {window} tokens. However, you requested {tokens} tokens"
    " ({tokens} in the messages, 0 in the completion). Please reduce the length of the messages or"
    " completion."
)

REFUSALS = (
    Refusal("openai", 400, _openai(_MAXIMUM, **_EXCEEDED)),
    Refusal(
        "openai",
        400,
        _openai(
            "Input tokens exceed the configured limit of {window} tokens. Your messages resulted in"
            " {tokens} tokens. Please reduce the length of the messages.",
            **_EXCEEDED,
        ),
    ),
    Refusal(
        "openai",
        429,
        {
            "error": {
                "message": (
                    "Request too large for gpt-4o in organization org-x on tokens per min (TPM):"
                    " Limit {window}, Requested {tokens}. The input or output tokens must be"
                    " reduced in order to run successfully."
                ),
                "type": "tokens",
                "param": None,
                "code": "rate_limit_exceeded",
            }
        },
    ),
    Refusal(
        "azure", 400, {"error": {"message": _MAXIMUM, "type": "invalid_request_error", **_EXCEEDED}}
    ),
    Refusal(
        "anthropic",
        400,
        {
            "type": "error",
            "error": {
                "type": "invalid_request_error",
                "message": "prompt is too long: {tokens} tokens > {window} maximum",
            },
        },
    ),
    Refusal(
        "anthropic",
        400,
        {
            "type": "error",
            "error": {
                "type": "invalid_request_error",
                "message": (
                    "input length and `max_tokens` exceed context limit: {tokens} + 4096 >"
                    " {window}, decrease input length or `max_tokens` and try again"
                ),
            },
        },
    ),
    Refusal(
        "anthropic",
        413,
        {
            "type": "error",
            "error": {"type": "request_too_large", "message": "Request exceeds the maximum size"},
        },
    ),
    Refusal(
        "gemini",
        400,
        {
            "error": {
                "code": 400,
                "message": (
                    "The input token count ({tokens}) exceeds the maximum number of tokens allowed"
                    " ({window})."
                ),
                "status": "INVALID_ARGUMENT",
            }
        },
    ),
    Refusal(
        "mistral",
        400,
        {
            "object": "error",
            "message": (
                "Prompt contains {tokens} tokens and 0 draft tokens, too large for model with"
                " {window} maximum context length"
            ),
            "type": "invalid_request_error",
            "param": None,
            "code": "3051",
        },
    ),
    Refusal(
        "groq",
        400,
        _openai("Please reduce the length of the messages or completion.", **_EXCEEDED),
    ),
    Refusal(
        "groq",
        413,
        {
            "error": {
                "message": (
                    "Request too large for model `llama` in organization `org_x` service tier"
                    " `on_demand` on tokens per minute (TPM): Limit {window}, Requested {tokens},"
                    " please reduce your message size and try again."
                ),
                "type": "tokens",
                "code": "rate_limit_exceeded",
            }
        },
    ),
    Refusal(
        "together_ai",
        422,
        _openai(
            "Input validation error: `inputs` tokens + `max_new_tokens` must be <= {window}. Given:"
            " {tokens} `inputs` tokens and 0 `max_new_tokens`",
            param=None,
            code=None,
        ),
    ),
    Refusal(
        "fireworks_ai",
        400,
        {
            "error": {
                "object": "error",
                "type": "invalid_request_error",
                "message": (
                    "The prompt is too long: {tokens}, model maximum context length: {window}"
                ),
            }
        },
    ),
    Refusal("deepseek", 400, _openai(_REQUESTED, param=None, code="invalid_request_error")),
    Refusal(
        "xai",
        400,
        {
            "code": "Client specified an invalid argument",
            "error": (
                "This model's maximum prompt length is {window} but the request contains {tokens}"
                " tokens."
            ),
        },
    ),
    Refusal(
        "cerebras",
        400,
        {
            "message": (
                "Please reduce the length of the messages or completion. Current length is {tokens}"
                " while limit is {window}"
            ),
            "type": "invalid_request_error",
            **_EXCEEDED,
        },
    ),
    Refusal(
        "openrouter",
        400,
        {
            "error": {
                "message": (
                    "This endpoint's maximum context length is {window} tokens. However, you"
                    " requested about {tokens} tokens ({tokens} of text input). Please reduce the"
                    ' length of either one, or use the "middle-out" transform to compress your'
                    " prompt automatically."
                ),
                "code": 400,
            }
        },
    ),
    Refusal(
        "hosted_vllm",
        400,
        {
            "object": "error",
            "message": _REQUESTED,
            "type": "BadRequestError",
            "param": None,
            "code": 400,
        },
    ),
    Refusal(
        "hosted_vllm",
        400,
        {
            "error": {
                "message": (
                    "The decoder prompt (length {tokens}) is longer than the maximum model length"
                    " of {window}. Make sure that `max_model_len` is no smaller than the number of"
                    " text tokens."
                ),
                "type": "BadRequestError",
                "param": None,
                "code": 400,
            }
        },
    ),
    Refusal(
        "hosted_vllm",
        400,
        {
            "object": "error",
            "message": (
                "The input ({tokens} tokens) is longer than the model's context length ({window}"
                " tokens)."
            ),
            "type": "BadRequestError",
            "param": None,
            "code": 400,
        },
    ),
    Refusal(
        "hosted_vllm",
        400,
        {
            "object": "error",
            "message": (
                "The prompt (total length {tokens}) is too long to fit into the model (context"
                " length {window}). Make sure that `max_model_len` is no smaller than the number of"
                " text tokens plus multimodal tokens. For image inputs, the number of image tokens"
                " depends on the number of images, and possibly their aspect ratios as well."
            ),
            "type": "BadRequestError",
            "param": None,
            "code": 400,
        },
    ),
    Refusal(
        "nvidia_nim",
        400,
        {
            "object": "error",
            "message": (
                "The sum of prompt length ({tokens}.0), query length (0) should not exceed"
                " max_num_tokens ({window})"
            ),
            "type": "BadRequestError",
            "param": None,
            "code": 400,
        },
    ),
    Refusal(
        "llamafile",
        400,
        {
            "error": {
                "code": 400,
                "message": (
                    "the request exceeds the available context size. try increasing the context"
                    " size or enable context shift"
                ),
                "type": "exceed_context_size_error",
                "n_prompt_tokens": "{tokens}",
                "n_ctx": "{window}",
            }
        },
    ),
    Refusal(
        "lm_studio",
        400,
        {
            "error": (
                "Trying to keep the first {tokens} tokens when context the overflows. However, the"
                " model is loaded with context length of only {window} tokens, which is not enough."
                " Try to load the model with a larger context length, or provide a shorter input"
            )
        },
    ),
    Refusal("ollama", 400, {"error": "input exceeds context length"}),
    Refusal(
        "ollama_chat", 400, {"error": "prompt too long; exceeded max context length by 902 tokens"}
    ),
    Refusal(
        "cohere_chat",
        400,
        {
            "id": "x",
            "message": (
                "too many tokens: size limit exceeded by 902 tokens. Try using shorter or fewer"
                " inputs. The limit for this model is {window} tokens."
            ),
        },
    ),
    Refusal(
        "huggingface",
        422,
        {
            "error": (
                "Input validation error: `inputs` must have less than {window} tokens. Given:"
                " {tokens}"
            ),
            "error_type": "validation",
        },
    ),
    Refusal(
        "databricks",
        400,
        {
            "error_code": "BAD_REQUEST",
            "message": (
                "Input length {tokens} exceeds the maximum context length of {window} tokens of"
                " this model"
            ),
        },
    ),
    Refusal(
        "moonshot",
        400,
        _openai("Invalid request: Your request exceeded model token limit: {window}"),
    ),
    Refusal("zai", 400, {"error": {"code": "1261", "message": "Prompt exceeds max length"}}),
    Refusal(
        "dashscope",
        400,
        _openai(
            "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1,"
            " {window}]",
            param=None,
            code="invalid_parameter_error",
        ),
    ),
    Refusal("minimax", 400, _openai("invalid params, context window exceeds limit (2013)")),
    Refusal(
        "volcengine",
        400,
        {
            "error": {
                "code": "InvalidParameter",
                "message": "Input length {tokens} exceeds the maximum length {window}",
                "param": "",
                "type": "BadRequest",
            }
        },
    ),
    Refusal("sambanova", 400, _openai(_REQUESTED, param=None, code="context_length_exceeded")),
    Refusal(
        "nvidia_nim",
        400,
        {"object": "error", "message": _REQUESTED, "type": "BadRequestError", "code": 400},
    ),
    Refusal("deepinfra", 400, {"error": {"message": _REQUESTED}}),
    Refusal(
        "perplexity",
        400,
        {"error": {"message": _REQUESTED, "type": "invalid_request", "code": 400}},
    ),
    Refusal(
        "github",
        413,
        {
            "error": {
                "code": "tokens_limit_reached",
                "message": "Request body too large for gpt-4o model. Max size: {window} tokens.",
                "details": "Request body too large for gpt-4o model. Max size: {window} tokens.",
            }
        },
    ),
    Refusal(
        "watsonx",
        400,
        {
            "errors": [
                {
                    "code": "invalid_input_argument",
                    "message": (
                        "Invalid input argument for Model: the number of input tokens {tokens}"
                        " cannot exceed the total tokens limit {window} for this model"
                    ),
                }
            ],
            "status_code": 400,
        },
    ),
    Refusal(
        "openai",
        400,
        {
            "code": 20015,
            "message": (
                "length of prompt_tokens ({tokens}) must be less than max_seq_len ({window})."
            ),
            "data": None,
        },
    ),
    Refusal("bedrock", 400, {"message": "Input is too long for requested model."}),
    Refusal(
        "bedrock",
        400,
        {
            "message": (
                "The model returned the following errors: Input Tokens Exceeded: Number of input"
                " tokens exceeds maximum length. Please update the input to try again."
            )
        },
    ),
    Refusal(
        "bedrock",
        400,
        {
            "message": (
                "The model returned the following errors: prompt is too long: {tokens} tokens >"
                " {window} maximum"
            )
        },
    ),
)
"""Those of the providers that most jobs use; ``window_errors.PATTERNS`` knows more texts than
these.
"""

NO_REASON = Refusal("unknown", 422, {"detail": "The request could not be processed."})
"""A refusal that does not say why."""
