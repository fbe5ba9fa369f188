"""A command line is cut as its program cuts it."""

from __future__ import annotations

from hypothesis import given as given_by
from hypothesis import strategies as st

from mulligan.run.agents.program import ArgvGrammar, cut, given, joined, value_of, without, words

GRAMMAR = ArgvGrammar(
    values="-m --model -p", lists="--tools", maybes="--resume -r", flags="-y -v --verbose"
)


def parts(*args: str):
    return cut(args, GRAMMAR)


def test_a_word_behind_a_list_is_one_of_the_list():
    assert words(parts("--tools", "Bash", "fix it")) == ()
    assert words(parts("fix it", "--tools", "Bash", "Edit")) == ("fix it",)


def test_an_optional_value_is_taken_if_it_is_no_option():
    assert value_of(parts("--resume", "abc", "go"), "--resume") == "abc"
    assert words(parts("--resume", "--verbose", "go")) == ("go",)


def test_values_can_be_attached():
    for args in (("--model=x",), ("-m=x",), ("-mx",), ("-m", "x"), ("-ym", "x"), ("-ymx",)):
        assert value_of(parts(*args), "-m", "--model") == "x", args


def test_letters_that_stand_together_are_options_of_their_own():
    kept = without(parts("-yp", "the prompt", "-v"), "-p")
    assert joined(kept) == ("-y", "-v")


def test_a_value_may_look_like_an_option():
    assert value_of(parts("-p", "--tools are broken"), "-p") == "--tools are broken"


def test_everything_behind_the_end_of_options_is_a_word():
    assert words(parts("--verbose", "--", "--model", "x")) == ("--model", "x")


def test_the_word_behind_an_unknown_option_is_its_value_where_another_can_be_the_prompt():
    assert words(parts("--new", "thing", "--verbose", "the prompt")) == ("the prompt",)
    assert joined(without(parts("--new", "thing", "the prompt"), words=True)) == ("--new", "thing")


def test_the_word_behind_an_unknown_option_is_the_prompt_where_no_other_can_be():
    assert words(parts("--new", "the prompt")) == ("the prompt",)
    assert joined(without(parts("--new", "the prompt"), words=True)) == ("--new",)


def test_a_single_dash_is_a_word():
    assert words(parts("-")) == ("-",)


ARGS = st.lists(
    st.sampled_from(["-", "--", "-y", "-m", "--tools", "--resume", "-ym", "--x", "a", "b c", "-mx"])
    | st.text(max_size=6),
    max_size=12,
).map(tuple)


@given_by(ARGS)
def test_nothing_is_lost_when_a_command_line_is_cut(args):
    def spread(args):
        return "".join(args).replace("-", "")

    found = cut(args, GRAMMAR)
    assert spread(joined(found)) == spread(args)
    assert given(found, "--tools") == any(part.name == "--tools" for part in found)
    assert cut(joined(found), GRAMMAR) == found
