"""Token counts: equal to tiktoken's own for ordinary text, bounded and repeatable for any text,
without network.
"""

import sys
import tracemalloc

import pytest
import tiktoken
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.base.errors import InputError
from runtime.base.tokens import WINDOW, encoding
from tests.tiers.tiers import examples

BUNDLED = ("cl100k_base", "p50k_base", "o200k_base")
TEXT = st.text(st.characters(exclude_categories=()), max_size=300)


@pytest.mark.parametrize(
    ("name", "tokens"), [("cl100k_base", 4), ("p50k_base", 4), ("o200k_base", 4)]
)
def test_a_short_text_has_tiktokens_count(name: str, tokens: int) -> None:
    """The count of a short text is the encoding's own."""
    assert encoding(name).count("hello world, again") == tokens


def test_a_long_ordinary_text_has_tiktokens_count() -> None:
    """Windows do not change the count of prose that is longer than many of them."""
    text = "".join(
        f"Line {n} of the report says that all is well.\n\n  * item {n % 7}\n" for n in range(3000)
    )
    assert len(text) > 8 * WINDOW
    for name in BUNDLED:
        encoding(name)
        assert encoding(name).count(text) == len(tiktoken.get_encoding(name).encode_ordinary(text))


def test_no_table_is_kept_beside_the_matcher() -> None:
    """What Python keeps of an encoding: 13 MB, if it has its 100,000 tokens once more."""
    tiktoken.registry.ENCODINGS.pop("cl100k_base", None)
    tracemalloc.start()
    try:
        made = encoding.__wrapped__("cl100k_base")
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert made.count("hello world, again") == 4
    assert kept < 1_000_000


def test_special_tokens_are_ordinary_text() -> None:
    """A text that spells a special token counts as the characters it is written with."""
    assert encoding("cl100k_base").count("<|endoftext|>") == 7


def test_lone_surrogates_count_as_replacement_characters() -> None:
    """A lone surrogate, which no encoding has, counts as U+FFFD and is kept by clip."""
    counter = encoding("cl100k_base")
    assert counter.count("\ud800abc") == counter.count("\ufffdabc")
    assert counter.clip("\ud800abc", 99) == "\ud800abc"


@pytest.mark.slow
@pytest.mark.parametrize("name", BUNDLED)
@pytest.mark.parametrize(
    "text",
    ["a" * 1_000_000, " " * 1_000_000, "\n" * 1_000_000, " " * 1_000_000 + "x"],
    ids=["a", "sp", "nl", "spx"],
)
def test_a_megabyte_of_one_character_counts(name: str, text: str) -> None:
    """A run that makes tiktoken itself give up is counted in windows."""
    assert 7_000 < encoding(name).count(text) <= 500_001


@given(text=TEXT, tokens=st.integers(-1, 40))
@settings(max_examples=examples(200))
def test_clip_gives_a_prefix_within_the_budget(text: str, tokens: int) -> None:
    """Clip returns a prefix of the text whose count is within the budget, and all of it where it
    fits.
    """
    counter = encoding("cl100k_base")
    clipped = counter.clip(text, tokens)
    assert text.startswith(clipped)
    assert counter.count(clipped) <= max(tokens, 0)
    if counter.count(text) <= tokens:
        assert clipped == text


def test_clip_keeps_what_fits() -> None:
    """Clip cuts between tokens."""
    assert encoding("cl100k_base").clip("hello world, again", 2) == "hello world"


def test_an_unknown_encoding_is_an_input_error() -> None:
    """A name that tiktoken does not know names the ones it does."""
    with pytest.raises(InputError, match="encoding 'klingon' is not known; one of cl100k_base"):
        encoding("klingon")


def test_an_encoding_without_a_file_is_an_input_error() -> None:
    """An encoding that is not on the machine is not downloaded."""
    with pytest.raises(InputError, match="encoding 'r50k_base' is not on this machine"):
        encoding("r50k_base")


def test_litellm_is_found_and_not_imported() -> None:
    """Loading an encoding from litellm's files does not import litellm."""
    import subprocess

    code = (
        "import sys; from runtime.base.tokens import encoding; encoding('cl100k_base').count('a');"
        " print('litellm' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
