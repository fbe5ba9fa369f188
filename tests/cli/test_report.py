"""`mulligan report`: what is sent must not tell who sent it."""

from __future__ import annotations

import json

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
