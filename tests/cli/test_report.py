"""`mulligan report`: what is sent must not tell who sent it."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from mulligan.cli.commands.report import command, masked_sample


def run(*args, words):
    return CliRunner().invoke(command, [*args], input=words, catch_exceptions=False)


def test_a_sample_has_the_words_and_what_was_read_in_them():
    result = run("--exit-code", "1", "--expected", "quota", words="the quota of this seat\n")
    told = json.loads(result.stdout)
    assert told["text"] == "the quota of this seat\n"
    assert (told["label"], told["kind"], told["confidence"]) == ("quota", "quota", "low")


def test_secrets_names_addresses_and_ids_are_masked():
    text = (
        "key=sk-ant-api03-abcdefghijklmnopqrstuvwx /home/ann/work C:\\Users\\ann\\x /Users/ann/y\n"
        "ann@corp.example 10.1.2.3 req_011CUQMXMRXYuNRouGZJvUZ8 org-78cd08fac9804d20bac9\n"
        "5f0c1a2b-1111-2222-3333-444455556666 429 Too Many Requests, resets 5pm"
    )
    told = masked_sample(text)
    for secret in ("sk-ant", "ann", "10.1.2.3", "011CUQ", "78cd08", "5f0c1a2b"):
        assert secret not in told
    assert "429 Too Many Requests, resets 5pm" in told


def test_only_the_end_is_kept():
    told = masked_sample("\n".join(f"line {number}" for number in range(1000)))
    assert told.startswith("line 920\n")


def test_it_is_written_to_a_file_or_says_why_not(tmp_path):
    out = tmp_path / "sample.json"
    assert run("--out", str(out), words="x").exit_code == 0
    assert json.loads(out.read_text())["text"] == "x"
    result = CliRunner().invoke(command, ["--out", str(tmp_path / "no" / "where")], input="x")
    assert result.exit_code == 1
    assert "cannot write" in result.output


KEY = "".join(f"MIIEabcdEFGH{number:04}\n" for number in range(200))


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        (f"-----BEGIN RSA PRIVATE KEY-----\n{KEY}-----END RSA PRIVATE KEY-----\nfailed\n", "MIIE"),
        (f"sk-ant-api03-{'Ab1' * 30} {'y ' * (16 * 1024 - 10)}", "Ab1"),
        (f"postgres://bob:pw@db/x {'y ' * (16 * 1024 - 10)}", "bob"),
        (f"{'x' * 300_000} postgres://bob:pw@db/x {'y ' * (16 * 1024 - 10)}", "bob"),
    ],
    ids=["lines", "a key", "a scheme", "of a long text"],
)
def test_a_secret_that_the_cut_goes_through_is_masked_first(text, secret):
    told = masked_sample(text)
    assert secret not in told
    assert len(told) <= 32 << 10


def test_a_line_that_was_torn_before_it_was_masked_is_left_out():
    told = masked_sample(f"{'x' * 10} password: {'s' * 300_000}\nfailed with 429\n")
    assert told == "failed with 429\n"


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        (r'{"cwd":"C:\\Users\\ann\\proj"}', r'{"cwd":"C:\\Users\\user\\proj"}'),
        (r"\"C:\\\\Users\\\\ann\\\\proj\"", r"\"C:\\\\Users\\\\user\\\\proj\""),
        ('{"cwd":"/Users/Ann Lee"}', '{"cwd":"/Users/user"}'),
        ("/Users/Ann Lee/proj/a.py:4", "/Users/user/proj/a.py:4"),
        ("no room in /home/ann for more", "no room in /home/user for more"),
        ("~/.claude/projects/-home-ann-proj/a.jsonl", "~/.claude/projects/-home-user/a.jsonl"),
        ("projects/C--Users-ann-proj/a.jsonl", "projects/C--Users-user/a.jsonl"),
        ("%2Fhome%2Fann", "%2Fhome%2Fuser"),
        ("Author: Ann Lee <ann@corp.example>", "Author: user <user@example.org>"),
        ("ann@workstation:~$ ls", "user@example.org:~$ ls"),
        ("ssh ann@10.1.2.3", "ssh user@example.org"),
        ('{"user_id": "ann-7", "n": 1}', '{"user_id": "[id]", "n": 1}'),
        ('{"account_id": 77123}', '{"account_id": 0}'),
        ("organization_id=acme-9", "organization_id=[id]"),
        ('{"login":"ann"}', '{"login":"user"}'),
        ("USER=ann", "USER=user"),
        ("from fe80::1ff:fe23:4567:890a", "from 2001:db8::1"),
        ("from 2001:0db8:85a3:0000:0000:8a2e:0370:7334", "from 2001:db8::1"),
        ("[::1]:80", "[2001:db8::1]:80"),
        ("aa:bb:cc:dd:ee:0f", "[id]"),
        ("session_01AbCdEf9012", "[id]"),
        ("msg_011CUQMXMRXYuNRo", "[id]"),
        ("toolu_01A09q90qw90lq917835lq9", "[id]"),
        ("thread_abc123def456", "[id]"),
        ("account 998877665544", "account 123456789012"),
        ("arn:aws:iam::998877665544:user/ann", "arn:[id]"),
        ("0123456789ABCDEF0123456789abcdef", "[id]"),
        ("wJalrXUtnFEMI/K7MDENG/bPxRfiCYq8Zk3TWa1L", "[masked]"),
        ("5.146.12.33 10.1.2.3 1.2.3.4:443", "192.0.2.1 192.0.2.1 192.0.2.1:443"),
        ("from 1.2.3.4", "from 192.0.2.1"),
    ],
)
def test_what_tells_who_sent_it_is_masked(text, masked):
    assert masked_sample(text) == masked


@pytest.mark.parametrize(
    "text",
    [
        'acme 1.2.3.4, v12.3.4.5, Chrome/131.0.0.0, "claude_version":"12.3.4.5"',
        "claude-code@2.1.267 acme@latest actions/checkout@v4 @acme/agent@1.2.3",
        "session_exhausted, user_cancelled, claude-3-5-sonnet-20241022, gpt-5.3-codex-spark",
        "std::io::Error in tests/a.py::test_1 at 12:34:56, resets 1751803200",
        "createRateLimitErrorResponseHandlerFactory2 of src/app/components/Dashboard2/index",
        "You've hit your limit · resets 10:30pm (Europe/Berlin)",
    ],
)
def test_what_says_something_about_a_failure_stays(text):
    assert masked_sample(text) == text


@pytest.mark.parametrize(
    "part",
    [
        *("a", "a1", "a.", "a@", "1.", "a:", "a_", "::", "-home-", "/home/", "/Users/a ", "\\"),
        *("user_id", 'author: "', '"user":"', "10.1.2.3 ", "%2F", "ab12_", '"/home/a', "A/"),
    ],
)
def test_masking_noise_comes_to_an_end(part):
    assert len(masked_sample(part * (260_000 // len(part)))) <= 32 << 10


def test_a_sample_can_be_scored():
    words = "You've hit your limit\nmodel: opus\n"
    told = json.loads(run("--expected", "quota", "--expected-reset", "2h", words=words).stdout)
    assert len(told["id"]) == 12
    assert (told["expected_seconds"], told["source"]) == (7200, "banner")
    assert {"local_tz", "model", "now", "exit_code"} <= set(told)
    bare = json.loads(run(words="fine\n").stdout)
    assert (bare["label"], bare["expected_seconds"]) == (None, None)


def test_it_says_if_the_sample_is_read_otherwise_than_the_whole():
    result = run(words="API Error: 529 Overloaded\n" + "\n" * 100)
    assert result.stderr == (
        "warning: the sample is read as not a failure, the whole output as overloaded\n"
    )
    assert json.loads(result.stdout)["kind"] == "overloaded"


def test_why_it_was_read_so_is_masked_as_well():
    words = "the quota of key sk-ant-api03-abcdefghijklmnopqrstuvwx\n"
    assert "sk-ant" not in run("--exit-code", "1", words=words).stdout


def test_a_program_that_nothing_knows_is_refused():
    result = run("--agent", "claud", words="x")
    assert result.exit_code == 2
    assert "no agent is called 'claud'; did you mean 'claude'?" in result.output


def test_what_powershell_writes_is_reported():
    result = CliRunner().invoke(command, [], input="API Error: 529\n".encode("utf-16"))
    assert json.loads(result.stdout)["text"] == "API Error: 529\n"
