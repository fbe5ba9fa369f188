"""Files that look like secrets, by name.

These files are never committed and never moved: they stay where they are, and are reported. A false
alarm costs a line in a report, a committed key costs the key, so the patterns are broad. Source
code is excepted: ``credentials.py`` is a module.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import NamedTuple

__all__ = ("HEAD_BYTES", "SECRETS", "Secret", "why_secret")

# How much of a file is looked at; a key stands at the top of its file.
HEAD_BYTES = 8192


class Secret(NamedTuple):
    """A pattern for names, in lower case, with what such files hold."""

    pattern: str  # for the file's name, or for its whole path if it contains a slash
    reason: str
    content: str = ""  # if given, the file counts only if this is found near its beginning
    excepted: tuple[str, ...] = ()  # names that are meant to be shared


_SHARED = ("*.example", "*.sample", "*.template", "*.dist", "*.defaults", "*.schema")
_CODE = (
    *("*.py", "*.pyi", "*.js", "*.jsx", "*.mjs", "*.ts", "*.tsx", "*.go", "*.rs", "*.java"),
    *("*.kt", "*.rb", "*.php", "*.c", "*.h", "*.cc", "*.cpp", "*.hpp", "*.cs", "*.swift"),
    *("*.scala", "*.ex", "*.exs", "*.md", "*.rst", "*.html", "*.css", "*.vue", "*.svelte"),
)
_PLAIN = (*_SHARED, *_CODE)

SECRETS: tuple[Secret, ...] = (
    Secret(".env", "environment files hold keys"),
    Secret(".env.*", "environment files hold keys", excepted=_PLAIN),
    Secret("*.env", "environment files hold keys", excepted=("example.env", "sample.env")),
    Secret(".envrc", "direnv files hold keys"),
    Secret("*.pem", "certificates come with private keys"),
    Secret("*.key", "private keys"),
    Secret("*.p12", "key stores"),
    Secret("*.pfx", "key stores"),
    Secret("*.jks", "key stores"),
    Secret("*.keystore", "key stores"),
    Secret("*.kdbx", "password databases"),
    Secret("*.ppk", "private keys"),
    Secret("*.asc", "private keys", content="PRIVATE KEY"),
    Secret("id_rsa*", "SSH keys", excepted=("*.pub",)),
    Secret("id_dsa*", "SSH keys", excepted=("*.pub",)),
    Secret("id_ecdsa*", "SSH keys", excepted=("*.pub",)),
    Secret("id_ed25519*", "SSH keys", excepted=("*.pub",)),
    Secret("credentials*", "credentials", excepted=_PLAIN),
    Secret(".credentials*", "credentials", excepted=_PLAIN),
    Secret("client_secret*", "OAuth secrets", excepted=_PLAIN),
    Secret("service-account*.json", "service account keys"),
    Secret("service_account*.json", "service account keys"),
    Secret("secrets.*", "secrets", excepted=_PLAIN),
    Secret(".secrets*", "secrets", excepted=_PLAIN),
    Secret("*.tfvars", "Terraform variables hold keys"),
    Secret("*.tfstate", "Terraform state holds keys"),
    Secret("*.tfstate.backup", "Terraform state holds keys"),
    Secret(".netrc", "passwords of hosts"),
    Secret("_netrc", "passwords of hosts"),
    Secret(".pgpass", "database passwords"),
    Secret(".my.cnf", "database passwords"),
    Secret(".htpasswd", "passwords"),
    Secret(".git-credentials", "passwords of hosts"),
    Secret(".vault-token", "a Vault token"),
    Secret(".vault_pass*", "an Ansible vault password"),
    Secret(".npmrc", "a registry token", content=r"_auth|_password|//.*:_"),
    Secret(".yarnrc*", "a registry token", content=r"(?i)auth(?:token|ident)"),
    Secret(".pypirc", "a registry password", content=r"(?im)^\s*password\s*[=:]"),
    Secret(".dockercfg", "registry credentials"),
    Secret("*.docker/config.json", "registry credentials", content=r'"auths?"'),
    Secret("*.aws/credentials", "cloud keys"),
    Secret("*.kube/config", "cluster credentials"),
    Secret("kubeconfig*", "cluster credentials", excepted=_PLAIN),
)

# Keys in files of any name, except source code, which may quote these words.
_KEY_INSIDE = re.compile(rb"\A\s*-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")


def why_secret(path: str, head: bytes = b"") -> str:
    """What makes the file look like a secret, by its path and first bytes; empty if nothing."""
    whole = path.lower()
    name = whole.rpartition("/")[2]
    for secret in SECRETS:
        if not fnmatchcase(whole if "/" in secret.pattern else name, secret.pattern):
            continue
        if any(fnmatchcase(name, shared) for shared in secret.excepted):
            continue
        if secret.content and not re.search(secret.content.encode(), head):
            continue
        return secret.reason
    return "it begins with a private key" if _KEY_INSIDE.match(head) else ""
