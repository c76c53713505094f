"""Role and templates of a cluster as text that other tools apply."""

import json
from collections.abc import Mapping
from typing import Any

from esjobs.core.errors import InputError
from esjobs.store.base import Preparation


def text_of(prepared: Preparation, what: str) -> str:
    """Return ``role``, ``template`` (bodies by name) or ``terraform`` as JSON.

    Terraform in its JSON syntax: resources of the providers elastic/elasticstack and
    opensearch-project/opensearch. Raises :class:`InputError` for a store without roles.
    """
    if not prepared.product:
        raise InputError("a file has no roles or templates; name a cluster: --store https://HOST:9200")
    role = json.loads(prepared.role)
    made = {"role": role, "template": dict(prepared.templates), "terraform": _terraform(prepared, role)}
    return json.dumps(made[what], indent=2)


def _terraform(prepared: Preparation, role: Mapping[str, Any]) -> dict[str, Any]:
    if prepared.product == "elasticsearch":
        resources = {
            "elasticstack_elasticsearch_security_role": {
                "esjobs": {"name": "esjobs", "cluster": role["cluster"], "indices": role["indices"]}
            },
            "elasticstack_elasticsearch_index_template": {
                name: {
                    "name": name,
                    "index_patterns": body["index_patterns"],
                    "priority": body["priority"],
                    # the provider takes settings and mappings as JSON in text
                    "template": [{key: json.dumps(value) for key, value in body["template"].items()}],
                }
                for name, body in prepared.templates.items()
            },
        }
    else:
        resources = {
            "opensearch_role": {"esjobs": {"role_name": "esjobs", **role}},
            "opensearch_composable_index_template": {
                name: {"name": name, "body": json.dumps(body)} for name, body in prepared.templates.items()
            },
        }
    return {"resource": resources}
