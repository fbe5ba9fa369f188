"""Secrets that stand alone were shown.

Named secrets were masked (``api_key=…``, ``Authorization: …``). Of 74 kinds of keys printed bare,
as in ``login failed for pypi-AgEI…``, 40 were shown in stories, notes and journals. So were all
keys without any prefix, although the environment of the process said which value was secret; and
so was the password of ``postgres://app:p/w@db``, because a slash ended the search.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan.config.secret_variables import is_secret_name, mask_environment_secrets, secret_values
from mulligan.core.redaction import MASK, mask, presentable
from mulligan.run import Agent, Phase, Plan, run_plan
from mulligan.run.attempt.options import RunOptions
from mulligan.run.context import REAL_PLATFORM, RunContext
from mulligan.run.drive import make_run
from mulligan.run.journal.store import RunStore
from mulligan.run.process.stop import Stop

# Letters and digits that no message contains by chance, as long as any kind of key needs.
_S = "Zq7Xw9Kv2Mj4Tb8Rn5Lc3Hd6Pf1Gs0Yk7Vu9Wx2Bz4Na8Qe5Ti3Ro6Uj1"
_X = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08" * 3
_UPPER = _S.upper()

BARE = {
    "OpenAI": f"sk-proj-{_S}",
    "Anthropic": f"sk-ant-api03-{_S}-{_S}AA",
    "OpenRouter": f"sk-or-v1-{_X[:64]}",
    "Google": f"AIzaSy{_S[:33]}",
    "Google OAuth": f"ya29.{_S}",
    "Google client secret": f"GOCSPX-{_S[:28]}",
    "Google refresh token": f"1//0{_S}",
    "Groq": f"gsk_{_S[:52]}",
    "xAI": f"xai-{_S}",
    "Perplexity": f"pplx-{_S[:48]}",
    "NVIDIA": f"nvapi-{_S}",
    "Hugging Face": f"hf_{_S[:34]}",
    "Replicate": f"r8_{_S[:37]}",
    "Fireworks": f"fw_{_S[:24]}",
    "Cerebras": f"csk-{_S[:48].lower()}",
    "Together": f"tgp_v1_{_S[:43]}",
    "Jina": f"jina_{_X[:32]}{_S[:28]}",
    "Bedrock": f"ABSK{_S}{_S}==",
    "Bedrock, short-lived": f"bedrock-api-key-{_S}{_S}",
    "Tavily": f"tvly-dev-{_S[:32]}",
    "Firecrawl": f"fc-{_X[:32]}",
    "LangSmith": f"lsv2_pt_{_X[:32]}_{_X[:10]}",
    "Pinecone": f"pcsk_{_S[:6]}_{_S}",
    "PostHog": f"phx_{_S[:43]}",
    "E2B": f"e2b_{_X[:40]}",
    "GitHub": f"ghp_{_S[:36]}",
    "GitHub OAuth": f"gho_{_S[:36]}",
    "GitHub app": f"ghs_{_S[:36]}",
    "GitHub fine-grained": f"github_pat_{_S[:22]}_{_S}",
    "GitLab": f"glpat-{_S[:20]}",
    "GitLab runner": f"glrt-{_S[:20]}",
    "GitLab deploy": f"gldt-{_S[:20]}",
    "Bitbucket": f"ATBB{_S[:32]}",
    "Atlassian": f"ATATT3xFfGF0{_S}{_S}=4A9B2C1D",
    "npm": f"npm_{_S[:36]}",
    "PyPI": f"pypi-AgEIcHlwaS5vcmc{_S}{_S}",
    "RubyGems": f"rubygems_{_X[:48]}",
    "NuGet": f"oy2{_S[:43].lower()}",
    "Docker": f"dckr_pat_{_S[:27]}",
    "CircleCI": f"CCIPAT_{_S[:22]}_{_X[:40]}",
    "Buildkite": f"bkua_{_X[:40]}",
    "Sourcegraph": f"sgp_{_X[:40]}",
    "SonarQube": f"squ_{_X[:40]}",
    "Postman": f"PMAK-{_X[:24]}-{_X[:34]}",
    "AWS": f"AKIA{_UPPER[:16]}",
    "AWS session": f"IQoJb3JpZ2luX2Vj{_S}{_S}==",
    "AWS session, older": f"FwoGZXIvYXdzE{_S}{_S}",
    "Alibaba": f"LTAI5t{_S[:16]}",
    "Databricks": f"dapi{_X[:32]}",
    "DigitalOcean": f"dop_v1_{_X[:64]}",
    "Vault": f"hvs.{_S}",
    "PlanetScale": f"pscale_tkn_{_S[:43]}",
    "Neon": f"napi_{_S[:60].lower()}",
    "Supabase": f"sbp_{_X[:40]}",
    "Netlify": f"nfp_{_S[:36]}",
    "Fly": f"fo1_{_S[:43]}",
    "Heroku": f"HRKU-{_S[:36]}",
    "Pulumi": f"pul-{_X[:40]}",
    "Tailscale": f"tskey-auth-{_S[:11]}CNTRL-{_S[:32]}",
    "Dynatrace": f"dt0c01.{_UPPER[:24]}.{_UPPER[:48]}",
    "Doppler": f"dp.pt.{_S[:43]}",
    "age": f"AGE-SECRET-KEY-1{_UPPER[:58]}",
    "Terraform": f"{_S[:14]}.atlasv1.{_S}{_S[:10]}",
    "Entra": f"{_S[:3]}8Q~{_S[:34]}",
    "Slack": f"xoxb-123456789012-{_S[:24]}",
    "Slack app": f"xapp-1-A0123456789-1234567890123-{_X[:64]}",
    "Linear": f"lin_api_{_S[:40]}",
    "Notion": f"ntn_{_S[:46]}",
    "Figma": f"figd_{_S[:40]}",
    "HubSpot": f"pat-na1-{_X[:8]}-{_X[:4]}-{_X[:4]}-{_X[:4]}-{_X[:12]}",
    "Airtable": f"pat{_S[:14]}.{_X[:64]}",
    "Shopify": f"shpat_{_X[:32]}",
    "Stripe": f"sk_live_{_S[:24]}",
    "Stripe webhook": f"whsec_{_S[:32]}",
    "Square": f"sq0atp-{_S[:22]}",
    "SendGrid": f"SG.{_S[:22]}.{_S[:43]}",
    "Mailgun": f"key-{_X[:32]}",
    "Mailchimp": f"{_X[:32]}-us21",
    "Resend": f"re_{_S[:8]}_{_S[:24]}",
    "Brevo": f"xkeysib-{_X[:64]}-{_S[:16]}",
    "Twilio": f"SK{_X[:32]}",
    "Telegram": f"1234567890:AA{_S[:33]}",
    "Discord": f"MT{_S[:24]}.{_S[:6]}.{_S[:38]}",
    "Grafana": f"glsa_{_S[:32]}_{_X[:8]}",
    "New Relic": f"NRAK-{_UPPER[:27]}",
    "Sentry": f"sntrys_eyJ{_S}{_S}",
    "Typeform": f"tfp_{_S[:44]}",
    "JWT": f"eyJhbGciOiJIUzI1NiJ9.{_S}.{_S}",
    "JWE": f"eyJhbGciOiJkaXIiLCJlbmMi.{''}.{_S[:16]}.{_S}.{_S[:22]}",
}


def survives(secret: str, text: str) -> bool:
    """Whether a part of the secret that would be of use stands in `text`."""
    # Prefixes of all keys of a kind are no secret.
    body = secret[len(secret) // 3 :]
    return any(body[at : at + 10] in text for at in range(len(body) - 9))


@pytest.mark.parametrize("kind", BARE)
@pytest.mark.parametrize(
    "said",
    ["login failed for {}", "({})", "'{}' was rejected", "got {}, which has expired", "{}\n"],
)
def test_a_key_that_stands_alone_is_masked(kind, said):
    shown = presentable(said.format(BARE[kind]))
    assert MASK in shown
    assert not survives(BARE[kind], shown), shown


@pytest.mark.parametrize(
    "said",
    [
        "npm_config_registry_timeout is not set",
        "hf_transfer_download_enabled=1",
        "the fw_update_in_progress flag",
        "re_encode_everything_again failed",
        "request req_011CSHoEeqs5C35K2UUqR7Fy failed",
        "session 4f9c1e2a-3b5d-4c6e-8f70-1a2b3c4d5e6f resumed",
        "model claude-sonnet-4-5-20250929 is overloaded",
        "commit 8f2c1de94b7a6035e1d2c3b4a5f60718293a4b5c was not found",
        "https://registry.example:4873/@scope/package",
        "http://127.0.0.1:8429/v1/messages answered 503",
    ],
)
def test_what_only_looks_a_little_like_a_key_stays(said):
    assert presentable(said) == said


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("postgres://app:p/w9x@db/prod", f"postgres://{MASK}@db/prod"),
        ("postgres://app:p@ss/w9x@db/prod", f"postgres://{MASK}@db/prod"),
        ("redis://:8080/abc@cache", f"redis://{MASK}@cache"),
        ("https://me:a/b@git.example/r.git", f"https://{MASK}@git.example/r.git"),
    ],
)
def test_a_password_with_a_slash_is_masked(said, shown):
    assert presentable(said) == shown


# The environment

PLAIN = "correct horse battery"


@pytest.mark.parametrize(
    "name",
    [
        *("OPENAI_API_KEY", "GITHUB_TOKEN", "PGPASSWORD", "DB_PASS", "MY_SECRET", "npm_authToken"),
        *(
            "AWS_SECRET_ACCESS_KEY",
            "TWINE_PASSWORD",
            "SENTRY_DSN",
            "X_COOKIE",
            "GH_PAT",
            "dbPassword",
        ),
        *("SLACK_WEBHOOK", "GOOGLE_CREDENTIALS", "PRIVATE_KEY", "BASIC_AUTH", "SIGNING_KEY_2"),
    ],
)
def test_names_of_secrets_are_known(name):
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name",
    [
        *("PATH", "HOME", "PWD", "OLDPWD", "SSH_AUTH_SOCK", "XDG_SESSION_ID", "KEYBOARD", "MONKEY"),
        *("TOKENIZERS_PARALLELISM", "MAX_TOKENS_LIMIT", "GOOGLE_CREDENTIALS_PATH", "AUTH_TYPE"),
        *("LANG", "TERM", "AUTHOR", "GIT_AUTHOR_NAME", "PASSENGER", "COMPASS", "SSL_CERT_FILE"),
    ],
)
def test_names_of_other_things_are_left_alone(name):
    assert not is_secret_name(name)


def test_a_secret_of_the_environment_is_masked_wherever_it_appears(monkeypatch):
    monkeypatch.setenv("ACME_API_KEY", PLAIN)
    monkeypatch.setenv("ACME_LEVEL", "a plain value")
    mask_environment_secrets()
    assert mask(f"the server said: {PLAIN}!") == f"the server said: {MASK}!"
    assert mask("q=correct%20horse%20battery") == f"q={MASK}"
    assert mask("a plain value") == "a plain value"


def test_a_short_secret_in_a_command_or_a_name_is_masked(monkeypatch, tmp_path):
    """Words of up to twelve letters and digits were taken for too short to be a secret."""
    monkeypatch.setenv("ACME_PASSWORD", "hunter2hunt")
    mask_environment_secrets()
    runs = RunStore(tmp_path / "home")
    with closing(Stop()) as stop:
        context = RunContext(os.environ, runs, stop, REAL_PLATFORM)
        command, name = ("psql", "hunter2hunt"), "hunter2hunt"
        claimed, _, stdin = make_run(context, command, RunOptions(), cwd=str(tmp_path), name=name)
    stdin.close()
    state = runs.look(claimed.id)
    runs.close()
    assert state is not None
    assert (state.made.command, state.made.name) == (f"psql {MASK}", MASK)


@pytest.mark.real
def test_a_secret_of_the_environment_that_a_plan_was_given_is_masked(monkeypatch, tmp_path):
    """`run_plan(environ=…)` masked what our own environment holds, and not what the agents got."""
    monkeypatch.setenv("MULLIGAN_HOME", str(tmp_path / "home"))
    words = 'echo "API Error: 401 $ACME_PASSWORD was refused" >&2; exit 3'
    plan = Plan(
        name="p",
        phases=(Phase(name="one", agents=(Agent(name="a", command=("sh", "-c", words)),)),),
    )
    environ = {"PATH": os.environ["PATH"], "ACME_PASSWORD": "hunter2hunt"}
    report = run_plan(plan, folder=tmp_path, environ=environ, is_shown=False)
    assert not report.is_success
    assert MASK in repr(report)
    assert "hunter2hunt" not in repr(report)
    kept = b"".join(each.read_bytes() for each in (tmp_path / "home").glob("state.journal.db*"))
    assert b"hunter2hunt" not in kept


GUARDED = """
import mulligan

@mulligan.retry(attempts=1, effects="read")
def fetch():
    raise ConnectionRefusedError("refused: lowercase words only")

try:
    fetch()
except ConnectionRefusedError as error:
    print(mulligan.story(error).tries[0].message)
"""


@pytest.mark.real
def test_a_guard_masks_the_environment_by_itself():
    found = subprocess.run(
        [sys.executable, "-c", GUARDED],
        env={**os.environ, "ACME_API_KEY": "lowercase words only"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert found.stdout.strip() == f"refused: {MASK}"


def test_a_key_that_was_loaded_later_is_masked_soon(monkeypatch):
    from mulligan.config import secret_variables as environment

    environment.mask_environment_secrets()
    mask("anything")
    monkeypatch.setenv("LATE_TOKEN", PLAIN)
    later = time.monotonic() + 2
    monkeypatch.setattr(time, "monotonic", lambda: later)
    assert mask(PLAIN) == MASK


def test_each_line_of_a_key_is_masked():
    values = secret_values({"TLS_KEY": "first line of it\n\nsecond line of it\n"})
    assert {"first line of it", "second line of it"} <= set(values)


def test_short_values_and_places_are_no_secrets():
    assert secret_values({"API_KEY": "1234567", "KEY_FILE": "/etc/ssl/private/a.pem"}) == ()


def test_a_password_inside_an_address_is_a_secret():
    assert secret_values({"DATABASE_URL": "postgres://app:hunter22x@db/prod"}) == ("hunter22x",)


@given(st.dictionaries(st.sampled_from(["A_KEY", "B_TOKEN", "LANG"]), st.text(max_size=40)))
def test_values_come_longest_first_and_none_is_short(environ):
    values = secret_values(environ)
    assert [len(value) for value in values] == sorted(map(len, values), reverse=True)
    assert all(len(value) >= 8 for value in values)
