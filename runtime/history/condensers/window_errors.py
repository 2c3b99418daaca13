"""Which errors of a model call mean that the prompt is too long for it.

litellm gives most of them one type. Where a provider has no code for it and litellm no rule, the
error's text tells: ``PATTERNS`` holds what each provider writes. A limit on tokens *per minute* is
no context window, unless the provider says that this very request is beyond it: then only a shorter
prompt helps.
"""

from __future__ import annotations

import re

TYPES = frozenset({"ContextWindowExceededError", "ContextOverflowError", "PromptTooLongError"})
CODES = frozenset(
    {
        "context_length_exceeded",
        "context_window_exceeded",
        "model_context_window_exceeded",
        "exceed_context_size_error",
        "model_max_prompt_tokens_exceeded",
        "tokens_limit_reached",
        "prompt_too_long",
        "request_too_large",
        "1261",
    }
)
PATTERNS: tuple[tuple[str, str], ...] = (
    ("openai", r"maximum context length (is|of) [\d,]+"),
    ("openai", r"exceeds the (model'?s )?context window"),
    ("openai", r"input tokens exceed the configured limit"),
    ("openai", r"request too large for .*(must be reduced|requested \d+)"),
    ("openai", r"\b(content|text|arguments|output|input|messages)(\[\d+\])?['\"]: string too long"),
    ("openai", r"please reduce the length of the (messages|prompt|input)"),
    ("anthropic", r"prompt is too long"),
    ("anthropic", r"exceeds? (the )?context limit"),
    ("anthropic", r"prompt: length: ?1\.\."),
    ("anthropic", r"request (exceeds the maximum size|size exceeds model context window)"),
    ("bedrock", r"input is too long( for requested model)?"),
    ("bedrock", r"too many input tokens"),
    ("bedrock", r"expected maxlength: ?\d+"),
    ("bedrock", r"exceeds? the maximum number of input tokens"),
    ("bedrock", r"input tokens exceeded: number of input tokens exceeds"),
    ("bedrock_mantle", r"prompt tokens \([\d,]+\) exceed model maximum"),
    ("gemini", r"exceeds the maximum number of tokens allowed"),
    ("vertex_ai", r"input token count is [\d,]+ but (the )?model only supports"),
    ("vertex_ai", r"request payload size exceeds"),
    ("cohere", r"too many tokens: (total number of tokens|size limit exceeded)"),
    ("mistral", r"too large for model with [\d,]+ maximum context length"),
    ("together_ai", r"`inputs` tokens \+ `max_new_tokens` must be"),
    ("huggingface", r"`inputs` must have less than [\d,]+ tokens"),
    ("huggingface", r"length limit exceeded"),
    ("ai21", r"prompt has too many tokens"),
    ("nlp_cloud", r"input text length should not exceed"),
    ("aleph_alpha", r"longer than the model'?s (maximum )?context length"),
    ("xai", r"maximum prompt length is [\d,]+"),
    ("fireworks_ai", r"prompt is too long.{0,80}maximum context length"),
    ("ollama", r"(input|prompt) (exceeds|too long).{0,40}context length"),
    ("llamafile", r"exceeds the available context size"),
    ("lm_studio", r"loaded with (a )?context length of only"),
    ("lm_studio", r"tokens to keep from the initial prompt is greater than the context length"),
    ("hosted_vllm", r"prompt \(length [\d,]+\) is longer than the maximum model length"),
    ("hosted_vllm", r"maximum model length of [\d,]+"),
    ("hosted_vllm", r"maximum input length is [\d,]+ tokens"),
    ("hosted_vllm", r"prompt \((total )?length [\d,]+\) is too long to fit into the model"),
    ("tensorrt_llm", r"sum of prompt length \([\d.,]+\).{0,60}should not exceed max_num_tokens"),
    (
        "tensorrt_llm",
        (
            r"prompt length (\+ number of draft tokens )?\([\d.,+ ]+\) exceeds maximum"
            r" (input|sequence) length"
        ),
    ),
    ("sglang", r"requested token count exceeds the model'?s maximum context length"),
    ("cerebras", r"current length is [\d,]+ while limit is [\d,]+"),
    ("watsonx", r"input tokens [\d,]+ cannot exceed the total tokens limit"),
    ("databricks", r"(input|prompt) (length|token count) [\d,]* ?exceeds"),
    ("moonshot", r"exceeded model token limit"),
    ("zai", r"prompt (exceeds max length|超长)"),
    ("dashscope", r"range of input length should be"),
    ("minimax", r"context window exceeds limit"),
    ("volcengine", r"input length [\d,]+ exceeds the maximum length"),
    ("volcengine", r"exceed max message tokens"),
    ("siliconflow", r"length of prompt_tokens \([\d,]+\) must be less than max_seq_len"),
    ("github_copilot", r"prompt token count of [\d,]+ exceeds the limit"),
    ("github", r"request body too large for .{0,60}max size: [\d,]+ tokens"),
    ("cloudflare", r"exceeded this model('s)? context window limit"),
    ("snowflake", r"prompt exceeded the maximum context length"),
    ("any", r"context[ _](length|window|size|limit)[ _]?(was |has been |is )?exceed"),
    (
        "any",
        (
            r"exceed(s|ed|ing)?( the| this)?( model'?s| available| maximum)* (context|token limit"
            r" of the model)"
        ),
    ),
)
_PATTERN = re.compile("|".join(f"(?:{text})" for _, text in PATTERNS), re.IGNORECASE | re.DOTALL)
_RATE = re.compile(
    r"rate.?limit|tokens per (min|day|hour|second)|\bTPM\b|throttl|too many requests|quota",
    re.IGNORECASE,
)
_THIS_REQUEST = re.compile(r"request too large|must be reduced", re.IGNORECASE)
# A shorter prompt would be refused for these just the same.
_PARAMETER = re.compile(
    r"max_(completion_)?tokens is too large|invalid 'user'|string_above_max_length.*'user'",
    re.IGNORECASE,
)


def is_window_error(
    text: str, *, error_type: str = "", code: str | int | None = None, status: int | None = None
) -> bool:
    """Whether a model call failed because its prompt is too long.

    ``text`` is the error's message, ``error_type`` the name of its exception class, ``code`` the
    provider's own code for it and ``status`` the HTTP status, where there are any.
    """
    if error_type in TYPES or (code is not None and str(code).lower() in CODES):
        return True
    if _PARAMETER.search(text):
        return False
    if (_RATE.search(text) or status == 429) and not _THIS_REQUEST.search(text):
        return False
    # Codes in quotes only, as in a provider's JSON: one such as 1261 may stand in any text.
    if any(name in text for name in TYPES) or any(
        f'"{name}"' in text or f"'{name}'" in text for name in CODES
    ):
        return True
    return _PATTERN.search(text) is not None
