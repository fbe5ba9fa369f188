"""Other people's words: no secret, no escape sequence, no second line survives."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from mulligan.core.redaction import MASK, clean, mask, presentable

# Planted: letters and digits that no message contains by chance.
PLANTED = "Zq7Xw9Kv2Mj4Tb8Rn5Lc3Hd6"
JWT = f"eyJhbGciOiJIUzI1NiJ9.{PLANTED}.{PLANTED}"

# Where secrets stand in what servers, SDKs and programs say. {s} is one of letters and digits.
TEMPLATES = [
    # headers, as text
    "Authorization: Bearer {s}",
    "authorization: Basic {s}==",
    "Proxy-Authorization: Negotiate {s}",
    "Authorization=Token {s}",
    "x-api-key: {s}",
    "api-key: {s}",
    "X-Goog-Api-Key: {s}",
    "Ocp-Apim-Subscription-Key: {s}",
    "X-Auth-Token: {s}",
    "x-amz-security-token: {s}",
    "Cookie: theme=dark; sid={s}; lang=en",
    "Set-Cookie: sid={s}; Path=/; HttpOnly",
    "request failed with Bearer {s} in the header",
    # headers, as Python shows them
    "{{'authorization': 'Bearer {s}', 'accept': '*/*'}}",
    "{{'x-api-key': '{s}', 'accept': '*/*'}}",
    '{{"Cookie": "sid={s}; theme=dark"}}',
    "{{b'x-api-key': b'{s}'}}",
    # bodies
    '{{"api_key": "{s}"}}',
    '{{"apiKey":"{s}"}}',
    '{{"access_token": "{s}", "expires_in": 3600}}',
    '{{"refreshToken":"{s}"}}',
    '{{"client_secret": "{s}"}}',
    '{{"password": "a \\"quoted\\" {s}"}}',
    "{{'passwd': '{s}'}}",
    '{{"private_key": "{s}"}}',
    '{{"key": "{s}"}}',
    "password={s}",
    "passphrase = {s}",
    "PGPASSWORD={s} psql",
    "ANTHROPIC_API_KEY={s}",
    "aws_secret_access_key={s}",
    "SharedAccessKey={s};EntityPath=q",
    # URLs
    "GET https://api.example.com/v1?key={s}&alt=json",
    "https://example.com/cb#access_token={s}&state=1",
    "https://storage.example.com/o?X-Amz-Signature={s}",
    "https://blob.example.com/c?sv=2022&sig={s}",
    "redis://:{s}@cache:6379/0",
    "postgresql://app:{s}@db/prod",
    "https://x-access-token:{s}@git.example.com/o/r.git",
    "amqps://user:{s}@mq",
    # by their looks
    "Incorrect API key provided: sk-{s}",
    "sk-proj-{s}",
    "sk-ant-api03-{s}-{s}AA",
    "sk-or-v1-{s}",
    "sk_live_{s}",
    "rk_test_{s}",
    "AIzaSy{s}{s}",
    "ya29.{s}",
    "ghp_{s}",
    "gho_{s}",
    "github_pat_{s}",
    "glpat-{s}",
    "xoxb-1234-{s}",
    "hf_{s}",
    "gsk_{s}",
    "npm_{s}",
    "crsr_{s}",
    "key_{s}{s}",
    "vck_{s}",
    "vcp_{s}",
    "pa-{s}{s}",
    "sgamp_user_01ABCDEF_{s}",
    "fk-{s}2",
    # on command lines
    "curl -sS -u alice:{s} https://api.example.com",
    "curl --user 'alice:{s}' https://api.example.com",
    '{{"command":"curl -u \\"alice:{s}\\" https://api.example.com"}}',
]

secrets = st.text(
    alphabet="ABCDEFGHJKLMNPQRSTUVWXYZabcdefghjkmnpqrstuvwxyz23456789", min_size=24, max_size=60
)
around = st.text(max_size=40)


def survives(secret, text):
    """Whether enough of `secret` stands in `text` to be of use to anybody."""
    return any(secret[at : at + 10] in text for at in range(len(secret) - 9))


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_planted_secret_does_not_survive(template):
    shown = presentable(template.format(s=PLANTED))
    assert not survives(PLANTED, shown)
    assert MASK in shown


@given(template=st.sampled_from(TEMPLATES), secret=secrets, before=around, after=around)
@example(template=TEMPLATES[0], secret=PLANTED, before="\x1b[31m", after="\u202e")
def test_no_secret_survives_whatever_stands_around_it(template, secret, before, after):
    assume(not survives(secret, before + after))
    text = f"{before} {template.format(s=secret)} {after}"
    assert not survives(secret, presentable(text))


@given(
    template=st.sampled_from(TEMPLATES),
    noise=st.sampled_from(["\x1b[1m", "\x1b[0;31m", "\u200b", "\u202e", "\x00", "\x07", "\ufeff"]),
    at=st.integers(0, 23),
)
def test_a_secret_cannot_hide_behind_invisible_characters(template, noise, at):
    broken = PLANTED[:at] + noise + PLANTED[at:]
    assert not survives(PLANTED, presentable(template.format(s=broken)))


def test_a_json_web_token_is_known_by_its_looks():
    assert presentable(f"signature of {JWT} is wrong") == f"signature of {MASK} is wrong"


def test_an_access_key_of_a_cloud_is_known_by_its_looks():
    assert mask("user AKIAQ7XW9KV2MJ4TB8RN is denied") == f"user {MASK} is denied"


def test_a_key_of_an_id_and_a_secret_is_known_by_its_shape():
    key = "0123456789abcdef" * 2 + ".AbCdEfGh12345678"
    assert mask(f"the key {key} has expired") == f"the key {MASK} has expired"


def test_a_bearer_of_letters_alone_is_masked_if_it_is_longer_than_a_word():
    assert mask("sent Bearer abcdefghijklmnop to it") == f"sent Bearer {MASK} to it"
    assert mask("bearer authentication is needed") == "bearer authentication is needed"


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("Authorization: Bearer abcdefgh12345678", "Authorization: [masked]"),
        ('{"api_key": "abc", "model": "m"}', '{"api_key": "[masked]", "model": "m"}'),
        ("redis://:hunter22@cache:6379/0", "redis://[masked]@cache:6379/0"),
        ("GET /v1?key=abc&alt=json", "GET /v1?key=[masked]&alt=json"),
        ("password=hunter22 for app", "password=[masked] for app"),
    ],
)
def test_what_is_no_secret_stays_readable(said, shown):
    assert presentable(said) == shown


@pytest.mark.parametrize(
    "said",
    [
        "rate limit exceeded: 30000 input tokens per minute",
        "max_tokens: 4096 is more than 2048 allowed",
        "Your credit balance is too low to access the API",
        "monkey business in the keyboard driver",
        "see https://docs.example.com/errors for details",
        "connection to db:5432 refused",
        "usage limit reached, resets 7pm (Europe/Berlin)",
        "overloaded_error: Overloaded",
        "total_tokens=812 prompt_tokens=12",
        "cannot start /etc/passwd: /etc/passwd is not executable",
        "curl: (6) Could not resolve host: api.example.com",
        "docker run -u 1000:1000 acme-curl",
        "violates constraint fk-orders-customers-of-the-shop",
    ],
)
def test_innocent_words_are_left_alone(said):
    assert presentable(said) == said


@given(template=st.sampled_from(TEMPLATES), secret=secrets)
def test_masking_twice_changes_nothing(template, secret):
    once = mask(template.format(s=secret))
    assert mask(once) == once


# What is cleaned

ESCAPES = [
    ("\x1b[31mred\x1b[0m", "red"),
    ("\x1b[2J\x1b[1;1Hgone", "gone"),
    ("\x1b]0;new title\x07shown", "shown"),
    ("\x1b]8;;https://evil.example\x1b\\link\x1b]8;;\x1b\\", "link"),
    ("\x1b]52;c;cm0gLXJmIC8=\x07copied", "copied"),
    ("\x1bPq#0;2;0;0;0\x1b\\sixel", "sixel"),
    ("\x9b31mred", "red"),
    ("back\x08\x08space", "backspace"),
    ("bell\x07", "bell"),
    ("null\x00", "null"),
    ("abc\u202edef\u202c", "abcdef"),
    ("a\u2066b\u2069c", "abc"),
    ("zero\u200bwidth\ufeff", "zerowidth"),
    ("lone\ud800surrogate", "lonesurrogate"),
    ("two\nlines\r\nand\tmore", "two lines and more"),
    ("a    b", "a b"),
    ("  edges  ", "edges"),
    ("\u2028line\u2029paragraph", "lineparagraph"),
]


@pytest.mark.parametrize(("said", "shown"), ESCAPES, ids=[repr(said) for said, _ in ESCAPES])
def test_what_could_move_a_cursor_is_gone(said, shown):
    assert clean(said) == shown


hostile = st.text(
    alphabet=st.characters() | st.sampled_from("\x1b\x9b]\\[;\x07\r\n\u202e\u2066 "), max_size=300
)


@given(hostile)
def test_cleaned_text_is_one_line_without_controls(text):
    shown = clean(text)
    assert len(shown) <= 500
    shown.encode()
    assert shown == shown.strip()
    for character in shown:
        assert unicodedata.category(character) not in {"Cc", "Cs", "Zl", "Zp"}
        assert unicodedata.bidirectional(character) not in {
            *("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"),
        }


@given(text=hostile, limit=st.integers(1, 50))
def test_cleaned_text_is_cut_where_asked(text, limit):
    shown = clean(text * 10, limit)
    assert len(shown) <= limit
    if len(shown) < limit:
        assert not shown.endswith("…") or text.endswith("…")


@given(hostile)
def test_presentable_text_is_presentable(text):
    shown = presentable(text)
    assert presentable(shown) == shown
    assert len(shown) <= 500


def test_a_long_text_says_that_it_was_cut():
    shown = presentable("word " * 1000)
    assert len(shown) == 500
    assert shown.endswith("…")


def test_a_secret_is_masked_before_the_text_is_cut():
    at_the_edge = "x " * 240 + f"Authorization: Bearer {PLANTED}"
    assert not survives(PLANTED, presentable(at_the_edge))


# A megabyte of what a bad regular expression would choke on

MEGABYTE = 1_000_000
HOSTILE = {
    "spaces": "password" + " " * MEGABYTE,
    "colons": "key:" * (MEGABYTE // 4),
    "keys": "sk-" * (MEGABYTE // 3),
    "dashes": "sk-" + "a-" * (MEGABYTE // 2),
    "quotes": '"password": "' + '\\"' * (MEGABYTE // 2),
    "escapes": "\x1b]" * (MEGABYTE // 2),
    "semicolons": "\x1b[" + ";" * MEGABYTE,
    "slashes": "://" * (MEGABYTE // 3),
    "userinfo": "https://" + "a:" * (MEGABYTE // 2),
    "tokens": "token" * (MEGABYTE // 5),
    "names": "a_" * (MEGABYTE // 2) + "api_key=x",
    "jwt": "eyJ" + "a." * (MEGABYTE // 2),
    "bidi": "\u202e" * MEGABYTE,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_a_megabyte_of_noise_costs_no_more_than_a_line(text):
    assert len(presentable(text)) <= 500


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_masking_alone_comes_to_an_end_on_long_texts(text):
    # Ten times the length must not be a hundred times the work: this would not come back.
    assert isinstance(mask(text[:100_000]), str)


def test_the_mask_itself_is_never_taken_for_a_secret():
    assert not re.search(r"[A-Za-z0-9]{8,}", MASK)
