"""The side of `litellm_faults.py` that runs inside litellm's own environment.

    PYTHON tests/real/litellm_calls.py URL '[["client", "openai", 2], …]'

Makes one call for each case and prints how it ended, a JSON line each. The provider "guarded" is
OpenAI by a wrapped client.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # or it asks the network for prices

import litellm  # type: ignore[import-not-found,unused-ignore]  # not in this environment
import openai

import mulligan

litellm.suppress_debug_info = True
url = sys.argv[1]
for client, provider, retries in json.loads(sys.argv[2]):
    key, base = f"mulligan-{client}", url if provider == "anthropic" else f"{url}/v1"
    options: dict[str, Any] = {"api_key": key, "api_base": base}
    if provider == "guarded":
        guard = mulligan.Guard(client, attempts=4)
        own = guard.wrap(openai.OpenAI(api_key=key, base_url=base))
        options = {"client": own, "max_retries": 0}
    try:
        found = litellm.completion(
            model="anthropic/m" if provider == "anthropic" else "openai/m",
            messages=[{"role": "user", "content": "hi"}],
            **options,
            **({"num_retries": retries} if retries else {}),
        )
        end = str(found.choices[0].finish_reason)
    except Exception as error:  # noqa: BLE001 -- whatever it is, is the outcome
        end = f"{type(error).__name__} {getattr(error, 'status_code', None)}"
    sys.stdout.write(json.dumps([client, end]) + "\n")
