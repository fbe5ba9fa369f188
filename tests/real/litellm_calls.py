"""The side of `litellm_faults.py` that runs inside litellm's own environment.

    PYTHON tests/real/litellm_calls.py URL '[["client", "openai", 2], …]'

Makes one call for each case and prints how it ended, a JSON line each.
"""

from __future__ import annotations

import json
import os
import sys

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # or it asks the network for prices

import litellm  # type: ignore[import-not-found,unused-ignore]  # not in this environment

litellm.suppress_debug_info = True
url = sys.argv[1]
for client, provider, retries in json.loads(sys.argv[2]):
    try:
        found = litellm.completion(
            model=f"{provider}/m",
            messages=[{"role": "user", "content": "hi"}],
            api_key=f"mulligan-{client}",
            api_base=f"{url}/v1" if provider == "openai" else url,
            **({"num_retries": retries} if retries else {}),
        )
        end = str(found.choices[0].finish_reason)
    except Exception as error:  # noqa: BLE001 -- whatever it is, is the outcome
        end = f"{type(error).__name__} {getattr(error, 'status_code', None)}"
    sys.stdout.write(json.dumps([client, end]) + "\n")
