"""API keys that can be recognised without a name beside them: their published prefixes and shapes.

One row per kind of key, used by `core.redaction`. A row costs one search for its prefix in a text;
its pattern is compiled the first time that the prefix is found. Where a vendor publishes a format
it is written out, else a generous tail of letters, digits, dashes and underscores is taken.
"""

from __future__ import annotations

__all__ = ("PREFIXES", "SHAPES")

_ALNUM = r"[A-Za-z0-9]{16,}"
_TAIL = r"[A-Za-z0-9_-]{16,}"
_HEX = r"[0-9a-f]{32,}"

# Prefix → what follows it. The prefix is matched as it is written, upper and lower case apart.
PREFIXES: dict[str, str] = {
    # Model providers
    "sk-": r"(?:[A-Za-z0-9]+[-_])*[A-Za-z0-9_-]{12,}",  # OpenAI, Anthropic, OpenRouter, DeepSeek …
    "pk-": r"(?:[A-Za-z0-9]+[-_])*[A-Za-z0-9_-]{12,}",  # Langfuse
    "rk-": r"(?:[A-Za-z0-9]+[-_])*[A-Za-z0-9_-]{12,}",
    "sess-": _TAIL,  # OpenAI sessions
    "AIza": r"[A-Za-z0-9_-]{10,}",  # Google API keys
    "gsk_": _ALNUM,  # Groq
    "xai-": _ALNUM,
    "pplx-": _ALNUM,  # Perplexity
    "nvapi-": _TAIL,
    "hf_": _ALNUM,
    "api_org_": _ALNUM,  # Hugging Face organisations
    "r8_": _ALNUM,  # Replicate
    "fw_": _ALNUM,  # Fireworks
    "csk-": _ALNUM,  # Cerebras
    "tgp_v1_": _TAIL,  # Together
    "jina_": _ALNUM,
    "pa-": r"[A-Za-z0-9_-]{40,}",  # Voyage
    "vck_": _ALNUM,  # Vercel: AI gateway, personal
    "vcp_": _ALNUM,
    "esecret_": _TAIL,  # Anyscale
    "ABSK": r"[A-Za-z0-9+/=]{20,}",  # Amazon Bedrock, long-lived
    "bedrock-api-key-": r"[A-Za-z0-9+/=]{20,}",
    # Agent programs
    "crsr_": _ALNUM,  # Cursor, and its older keys
    "key_": r"[A-Za-z0-9]{32,}",
    "sgamp_user_": _TAIL,  # Amp
    # Factory; constraints of databases (fk-orders-customers) have no digits
    "fk-": r"(?=[A-Za-z_-]{0,40}[0-9])[A-Za-z0-9_-]{20,}",
    # Tools of agents
    "tvly-": _TAIL,  # Tavily
    "fc-": _HEX,  # Firecrawl
    "lsv2_": _TAIL,  # LangSmith
    "pcsk_": _TAIL,  # Pinecone
    "e2b_": _ALNUM,
    "bb_live_": _TAIL,  # Browserbase
    "phc_": _ALNUM,  # PostHog
    "phx_": _ALNUM,
    "m0-": _TAIL,  # Mem0
    "wandb_v1_": _TAIL,
    # Code hosting, packages, builds
    "ghp_": _ALNUM,
    "gho_": _ALNUM,
    "ghs_": _ALNUM,
    "ghu_": _ALNUM,
    "ghr_": _ALNUM,
    "github_pat_": _TAIL,
    "glpat-": _TAIL,
    "gldt-": _TAIL,
    "glrt-": _TAIL,
    "glptt-": _TAIL,
    "glcbt-": _TAIL,
    "glagent-": _TAIL,
    "glsoat-": _TAIL,
    "gloas-": _TAIL,
    "glft-": _TAIL,
    "glimt-": _TAIL,
    "ATBB": r"[A-Za-z0-9]{20,}",  # Bitbucket
    "BBDC-": _TAIL,
    "npm_": _ALNUM,
    "pypi-": _TAIL,
    "rubygems_": _ALNUM,
    "oy2": r"[a-z0-9]{43}",  # NuGet
    "AKCp": r"[A-Za-z0-9]{20,}",  # Artifactory
    "dckr_pat_": _TAIL,
    "dckr_oat_": _TAIL,
    "CCIPAT_": _TAIL,  # CircleCI
    "bkua_": _ALNUM,  # Buildkite
    "sgp_": _TAIL,  # Sourcegraph
    "squ_": _ALNUM,  # SonarQube
    "sqp_": _ALNUM,
    "sqa_": _ALNUM,
    "PMAK-": _TAIL,  # Postman
    # Clouds, databases, hosting
    "AKIA": r"[A-Z0-9]{16}(?![A-Za-z0-9])",
    "ASIA": r"[A-Z0-9]{16}(?![A-Za-z0-9])",
    # AWS session tokens: base64 of a few headers that do not change
    "IQoJb3JpZ2lu": r"[A-Za-z0-9+/=]{40,}",
    "FwoGZXIvYXdz": r"[A-Za-z0-9+/=]{40,}",
    "FQoGZXIvYXdz": r"[A-Za-z0-9+/=]{40,}",
    "AQoDYXdz": r"[A-Za-z0-9+/=]{40,}",
    "LTAI": r"[A-Za-z0-9]{12,20}(?![A-Za-z0-9])",  # Alibaba Cloud
    "AKID": r"[A-Za-z0-9]{32}(?![A-Za-z0-9])",  # Tencent Cloud
    "ya29.": _TAIL,  # Google OAuth
    "GOCSPX-": _TAIL,
    "1//0": _TAIL,  # Google refresh tokens
    "dapi": r"[0-9a-f]{32}(?:-\d+)?",  # Databricks
    "dop_v1_": _ALNUM,  # DigitalOcean
    "doo_v1_": _ALNUM,
    "dor_v1_": _ALNUM,
    "hvs.": _TAIL,  # Vault
    "hvb.": _TAIL,
    "hvr.": _TAIL,
    "pscale_tkn_": _TAIL,
    "pscale_pw_": _TAIL,
    "pscale_oauth_": _TAIL,
    "napi_": _ALNUM,  # Neon
    "sbp_": _ALNUM,  # Supabase
    "sb_secret_": _TAIL,
    "nfp_": _ALNUM,  # Netlify
    "rnd_": _ALNUM,  # Render
    "fo1_": _TAIL,  # Fly
    "fm1": r"[ar]?_[A-Za-z0-9+/=_-]{16,}",
    "fm2_": r"[A-Za-z0-9+/=_-]{16,}",
    "HRKU-": _TAIL,  # Heroku
    "pul-": _HEX,  # Pulumi
    "tskey-": _TAIL,  # Tailscale
    "dt0c01.": r"[A-Z0-9]{16,}(?:\.[A-Z0-9]{16,})?",  # Dynatrace
    "dp.pt.": _TAIL,  # Doppler
    "dp.st.": r"[A-Za-z0-9._-]{16,}",
    "ops_eyJ": r"[A-Za-z0-9_-]{20,}",  # 1Password
    "AGE-SECRET-KEY-1": r"[A-Z0-9]{20,}",
    "cmVmdGtu": r"[A-Za-z0-9]{20,}",  # Artifactory reference tokens
    # Work: chat, mail, issues, payments, monitoring
    "xoxa-": r"[A-Za-z0-9-]{10,}",
    "xoxb-": r"[A-Za-z0-9-]{10,}",
    "xoxc-": r"[A-Za-z0-9-]{10,}",
    "xoxd-": r"[A-Za-z0-9%/+=-]{10,}",
    "xoxe": r"[.-][A-Za-z0-9.-]{10,}",
    "xoxp-": r"[A-Za-z0-9-]{10,}",
    "xoxr-": r"[A-Za-z0-9-]{10,}",
    "xoxs-": r"[A-Za-z0-9-]{10,}",
    "xapp-": r"[A-Za-z0-9-]{10,}",
    "lin_api_": _ALNUM,
    "lin_oauth_": _ALNUM,
    "ntn_": _ALNUM,  # Notion
    "secret_": r"[A-Za-z0-9]{40,}",
    "ATATT": r"[A-Za-z0-9_=-]{20,}",  # Atlassian
    "ATCTT": r"[A-Za-z0-9_=-]{20,}",
    "figd_": _TAIL,
    "pat-na1-": _TAIL,  # HubSpot
    "pat-eu1-": _TAIL,
    "shpat_": _ALNUM,  # Shopify
    "shpca_": _ALNUM,
    "shppa_": _ALNUM,
    "shpss_": _ALNUM,
    "sk_": r"(?:[A-Za-z0-9]+[-_])*[A-Za-z0-9_-]{12,}",  # Stripe, ElevenLabs, Clerk
    "pk_": r"(?:[A-Za-z0-9]+[-_])*[A-Za-z0-9_-]{12,}",
    "rk_": r"(?:[A-Za-z0-9]+[-_])*[A-Za-z0-9_-]{12,}",
    "whsec_": _TAIL,
    "sq0atp-": _TAIL,  # Square
    "sq0csp-": _TAIL,
    "EAAAE": r"[A-Za-z0-9_-]{40,}",
    "EZAK": r"[A-Za-z0-9]{40,}",  # EasyPost
    "EZTK": r"[A-Za-z0-9]{40,}",
    "FLWSECK": r"[-_][A-Za-z0-9_-]{16,}",  # Flutterwave
    "duffel_live_": _TAIL,
    "duffel_test_": _TAIL,
    "SG.": r"[A-Za-z0-9_-]{16,}(?:\.[A-Za-z0-9_-]*)?",  # SendGrid
    "key-": r"[0-9a-f]{32}(?![A-Za-z0-9])",  # Mailgun
    "re_": r"[A-Za-z0-9]{8,}_[A-Za-z0-9]{16,}",  # Resend
    "xkeysib-": _TAIL,  # Brevo
    "xsmtpsib-": _TAIL,
    "glsa_": _TAIL,  # Grafana
    "glc_": r"[A-Za-z0-9+/=_-]{16,}",
    "NRAK-": _ALNUM,  # New Relic
    "NRII-": _ALNUM,
    "NRJS-": _ALNUM,
    "sntrys_": r"[A-Za-z0-9+/=_-]{16,}",  # Sentry
    "sntryu_": _TAIL,
    "tfp_": _TAIL,  # Typeform
    "CFPAT-": _TAIL,  # Contentful
    "rdme_": _ALNUM,
    "aio_": r"[A-Za-z0-9]{20,}",  # Adafruit
    "sl.": r"[A-Za-z0-9_-]{60,}",  # Dropbox
    "EAACEdEose0cBA": r"[A-Za-z0-9]{10,}",  # Facebook
    "amzn.mws.": _TAIL,
    "v1.0-": r"[0-9a-f]{24}-[0-9a-f]{100,}",  # Cloudflare Origin CA
    # JSON web tokens (three parts), and encrypted ones (five parts, of which one may be empty)
    "eyJ": r"[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]*){0,3}",
}

# Keys without a prefix of their own: told by their whole shape. The first item must be in the text.
SHAPES: tuple[tuple[str, str], ...] = (
    (":AA", r"\d{8,10}:AA[A-Za-z0-9_-]{32,}"),  # Telegram bots
    (".", r"[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}"),  # Discord bots
    ("-us", r"[0-9a-f]{32}-us\d{1,2}(?![A-Za-z0-9])"),  # Mailchimp
    ("SK", r"SK[0-9a-f]{32}(?![A-Za-z0-9])"),  # Twilio
    (".", r"[0-9a-f]{32}\.[A-Za-z0-9]{16}(?![A-Za-z0-9])"),  # Z.ai
    (".atlasv1.", r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,}"),  # HCP Terraform
    ("8Q~", r"[A-Za-z0-9_~.-]{3}8Q~[A-Za-z0-9_~.-]{31,34}"),  # Microsoft Entra client secrets
    ("7Q~", r"[A-Za-z0-9_~.-]{3}7Q~[A-Za-z0-9_~.-]{31,34}"),
    ("pat", r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}"),  # Airtable
    (":APA91b", r"[A-Za-z0-9_-]{7,}:APA91b[A-Za-z0-9_-]{40,}"),  # Firebase messaging
)
