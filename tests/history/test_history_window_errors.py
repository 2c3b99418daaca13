"""A prompt that is too long is recognised by what providers answer, and nothing else is taken for
it.
"""

from __future__ import annotations

import os

import pytest

from runtime.history.condensers import is_window_error

TOO_LONG = {
    "openai": (
        "This model's maximum context length is 8192 tokens. However, your messages resulted in"
        " 9001 tokens."
    ),
    "openai responses": (
        "Your input exceeds the context window of this model. Please adjust your input and try"
        " again."
    ),
    "openai gpt-5": (
        "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in"
        " 300001 tokens."
    ),
    "openai tpm": (
        "Request too large for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000,"
        " Requested 46019. The input or output tokens must be reduced in order to run successfully."
    ),
    "openai content": (
        "Invalid 'messages[1].content': string too long. Expected a string with maximum length"
        " 1048576"
    ),
    "anthropic": "prompt is too long: 215301 tokens > 200000 maximum",
    "anthropic sum": "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
    "anthropic size": "Request size exceeds model context window",
    "bedrock": "The model returned the following errors: Input is too long for requested model.",
    "bedrock titan": (
        "Too many input tokens. Max input tokens: 8192, request input token count: 9000"
    ),
    "bedrock nova": (
        "Malformed input request: expected maxLength: 50000, actual: 77000, please reformat your"
        " input"
    ),
    "bedrock nova tokens": (
        "The model returned the following errors: Input Tokens Exceeded: Number of input tokens"
        " exceeds maximum length. Please update the input to try again."
    ),
    "bedrock_mantle": "prompt tokens (300000) exceed model maximum (262144)",
    "gemini": (
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."
    ),
    "vertex_ai": (
        "Unable to submit request because the input token count is 40000 but model only supports up"
        " to 32768."
    ),
    "vertex size": "400 Request payload size exceeds the limit: 20971520 bytes.",
    "cohere": (
        "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 5000."
    ),
    "cohere v2": (
        "too many tokens: size limit exceeded by 11326 tokens. Try using shorter or fewer inputs"
    ),
    "mistral": (
        "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum"
        " context length"
    ),
    "groq": "Please reduce the length of the messages or completion.",
    "together_ai": (
        "`inputs` tokens + `max_new_tokens` must be <= 4097. Given: 5000 `inputs` tokens"
    ),
    "huggingface": "Input validation error: `inputs` must have less than 4096 tokens. Given: 5000",
    "ai21": "Prompt has too many tokens",
    "nlp_cloud": "Input text length should not exceed 1024 tokens",
    "aleph_alpha": "This is longer than the model's maximum context length",
    "xai": "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
    "fireworks_ai": "The prompt is too long: 133000, model maximum context length: 131071",
    "openrouter": (
        "This endpoint's maximum context length is 128000 tokens. However, you requested about"
        " 150000 tokens"
    ),
    "ollama": "input exceeds context length",
    "ollama cloud": "prompt too long; exceeded max context length by 9 tokens",
    "llama.cpp": (
        "the request exceeds the available context size. try increasing the context size or enable"
        " context shift"
    ),
    "lm_studio": (
        "Trying to keep the first 5000 tokens when context overflows. However, the model is loaded"
        " with context length of only 4096 tokens, which is not enough."
    ),
    "vllm": "The decoder prompt (length 163840) is longer than the maximum model length of 131072.",
    "vllm multimodal": (
        "The prompt (total length 43698) is too long to fit into the model (context length 32768)."
        " Make sure that `max_model_len` is no smaller than the number of text tokens plus"
        " multimodal tokens."
    ),
    "tensorrt_llm": (
        "The sum of prompt length (72417.0), query length (0) should not exceed max_num_tokens"
        " (69632)"
    ),
    "tensorrt_llm engine": (
        "Prompt length (5056) exceeds maximum input length (2048). Set log level to info and check"
    ),
    "tensorrt_llm triton": (
        "Cannot process new request: Prompt length (5056) exceeds maximum sequence length (2048)"
    ),
    "sglang": "The input (9000 tokens) is longer than the model's context length (8192 tokens).",
    "cerebras": (
        "Please reduce the length of the messages or completion. Current length is 9000 while limit"
        " is 8192"
    ),
    "watsonx": (
        "the number of input tokens 5000 cannot exceed the total tokens limit 4096 for this model"
    ),
    "moonshot": "Invalid request: Your request exceeded model token limit: 8192",
    "zai": "Prompt exceeds max length",
    "dashscope": "InternalError.Algo.InvalidParameter: Range of input length should be [1, 30720]",
    "minimax": "invalid params, context window exceeds limit (2013)",
    "volcengine": "Input length 40000 exceeds the maximum length 32768",
    "siliconflow": "length of prompt_tokens (163280) must be less than max_seq_len (32768).",
    "github_copilot": "prompt token count of 70000 exceeds the limit of 64000",
    "github": "Request body too large for gpt-4o model. Max size: 8000 tokens.",
    "cloudflare": (
        "The estimated number of input and maximum output tokens (9000) exceeded this model context"
        " window limit (7968)."
    ),
    "code in the body": '{"error": {"message": "no", "code": "context_length_exceeded"}}',
}
OTHER = {
    "rate": (
        "Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Used 29000, Requested"
        " 2000."
    ),
    "bedrock throttle": "ThrottlingException: Too many tokens, please wait before trying again.",
    "output": "max_tokens is too large: 5000. This model supports at most 4096 completion tokens",
    "user": "Invalid 'user': string too long. Expected a string with maximum length 64",
    "call id": (
        "Invalid 'messages[2].tool_calls[0].id': string too long. Expected a string with maximum"
        " length 40"
    ),
    "item id": "Invalid 'input[26].id': string too long. Expected a string with maximum length 64",
    "name": "Invalid 'messages[3].name': string too long. Expected a string with maximum length 64",
    "stop": "Invalid 'stop': string too long. Expected a string with maximum length 16",
    "quota": "You exceeded your current quota, please check your plan and billing details.",
    "key": "Incorrect API key provided",
    "overloaded": "Overloaded",
    "tool": "tool_use ids must be unique",
    "timeout": "Request timed out.",
}


@pytest.mark.parametrize("name", TOO_LONG)
def test_too_long_is_recognised_by_its_text(name: str) -> None:
    """What the provider writes is enough, in upper and lower case."""
    assert is_window_error(TOO_LONG[name])
    assert is_window_error(TOO_LONG[name].upper())


@pytest.mark.parametrize("name", OTHER)
def test_other_errors_are_not_taken_for_it(name: str) -> None:
    """A limit on the rate, on the output or on another field is no reason to forget anything."""
    assert not is_window_error(OTHER[name])


def test_type_and_code_are_enough() -> None:
    """litellm's exception type, and a provider's code, need no text."""
    assert is_window_error("", error_type="ContextWindowExceededError")
    assert is_window_error("", code="context_length_exceeded")
    assert not is_window_error(
        "", error_type="BadRequestError", code="invalid_request_error", status=400
    )


@pytest.mark.slow
def test_every_provider_that_litellm_knows_is_recognised() -> None:
    """The plain OpenAI-style refusal, sent by any of litellm's providers, arrives as a window
    error.
    """
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    import httpx
    import litellm
    from litellm.litellm_core_utils.exception_mapping_utils import exception_type

    litellm.suppress_debug_info = True
    body = {"error": {"message": TOO_LONG["openai"], "code": "context_length_exceeded"}}
    providers = sorted(str(getattr(p, "value", p)) for p in litellm.provider_list)
    assert len(providers) > 80
    missed = []
    for provider in providers:
        response = httpx.Response(
            400, json=body, request=httpx.Request("POST", "http://localhost/v1")
        )
        refused = litellm.llms.openai.common_utils.OpenAIError(
            status_code=400, message=f"Error code: 400 - {body}", headers=response.headers
        )
        refused.response = response
        try:
            raise exception_type(
                model="m", original_exception=refused, custom_llm_provider=provider
            )
        except Exception as error:  # noqa: BLE001  any exception that litellm makes of it
            if not is_window_error(str(error), error_type=type(error).__name__):
                missed.append((provider, type(error).__name__, str(error)[:200]))
    assert missed == []
