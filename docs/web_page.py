"""Page of the roles, from the table of addresses."""

from esjobs.web.access import ROLES
from esjobs.web.table import ACTS, PAGES, ROWS

_HEAD = """# Readers and answers

{note}
Set in `[web]` of the [settings](settings.md) `base_url`, `key_file` (`openssl rand -hex 32`; add a line to
rotate) and, for a cluster, `journal`. Mails to sites then carry a link per flag. What people enter goes
into the journal; the next night enters it, once, into `flag_notes` and `acts`, and coordinators get a
message.

## Login

A proxy says who reads. oauth2-proxy runs with `--reverse-proxy --set-xauthrequest
--trusted-proxy-ip=127.0.0.1`; nginx:

```nginx
location = /oauth2/auth {{
  internal;
  proxy_pass http://127.0.0.1:4180;
  proxy_pass_request_body off;
  proxy_set_header Content-Length "";
  proxy_set_header Host $host;
}}
location /oauth2/ {{ proxy_pass http://127.0.0.1:4180; }}
proxy_set_header Host $host;
proxy_set_header X-Forwarded-For $remote_addr;
proxy_set_header X-Forwarded-User $user;
proxy_set_header X-Forwarded-Groups $groups;
set $user ""; set $groups "";
location ~ ^/(a|static)/ {{ access_log off; proxy_pass http://127.0.0.1:8080; }}
location / {{
  auth_request /oauth2/auth;
  auth_request_set $user $upstream_http_x_auth_request_user;
  auth_request_set $groups $upstream_http_x_auth_request_groups;
  error_page 401 = /oauth2/sign_in;
  proxy_pass http://127.0.0.1:8080;
}}
```

```toml
[web]
trusted_proxies = ["127.0.0.1"]
[[web.roles]]
group = "poplar-admins"
role = "site"
sites = ["POPLAR-LCG2"]
```

Headers from other peers are ignored. Without `trusted_proxies` this machine reads as `support`. Programs send
`Authorization: Bearer TOKEN`: `esjobs web --new-token grafana` prints one and its settings.

## Roles

Each may also do what those above it may. A site sees its own queues only; `public` and `site` see no names
of people.

| role | addresses |
|---|---|
"""


def web_page(note: str) -> str:
    """Return the page: a row for each role with addresses of its own."""
    rows = []
    for role in ROLES:
        own = [f"`{each.method} {each.pattern}`" for each in (*PAGES, *ACTS, *ROWS) if each.role == role]
        rows += [f"| {role} | {', '.join(own)} |\n"] if own else []
    return _HEAD.format(note=note) + "".join(rows)
