"""What looks like a secret, and what does not."""

from __future__ import annotations

import pytest

from mulligan.run.git import SECRETS, why_secret


@pytest.mark.parametrize(
    "path",
    [
        ".env", ".ENV", "app/.env.local", ".env.production", "prod.env", ".envrc", "server.pem",
        "tls/server.key", "id_rsa", "id_rsa.bak", ".ssh/id_ed25519", "credentials",
        "credentials.json", ".credentials.yml", ".aws/credentials", ".netrc", ".pgpass",
        "client_secret_123.json", "service-account-prod.json", "secrets.yaml", "x.tfvars",
        "store.p12", "Vault.kdbx", ".git-credentials", ".htpasswd", "home/.kube/config",
    ],
)  # fmt: skip
def test_it_looks_like_a_secret(path):
    assert why_secret(path)


@pytest.mark.parametrize(
    "path",
    [
        ".env.example", ".env.sample", ".env.template", "env.py", "environment.md", "id_rsa.pub",
        "credentials.py", "src/credentials_test.go", "secrets.py", "docs/secrets.md", "keyboard.c",
        "monkey", ".npmrc", ".pypirc", "README.md", "src/config.json", "credentials.example",
    ],
)  # fmt: skip
def test_it_does_not(path):
    assert why_secret(path) == ""


@pytest.mark.parametrize(
    ("path", "head"),
    [
        (".npmrc", b"//registry.example.com/:_authToken=abc\n"),
        (".pypirc", b"[main]\nusername = me\npassword = x\n"),
        ("notes.txt", b"-----BEGIN RSA PRIVATE KEY-----\nMII"),
        ("backup.asc", b"-----BEGIN PGP PRIVATE KEY BLOCK-----\n"),
        ("x/.docker/config.json", b'{"auths": {}}'),
    ],
)
def test_content_gives_it_away(path, head):
    assert why_secret(path, head)


def test_a_test_that_quotes_a_key_is_no_secret():
    assert why_secret("test_keys.py", b'KEY = "-----BEGIN RSA PRIVATE KEY-----"') == ""


def test_every_pattern_has_a_reason_and_is_in_lower_case():
    for secret in SECRETS:
        assert secret.reason
        assert secret.pattern == secret.pattern.lower()
