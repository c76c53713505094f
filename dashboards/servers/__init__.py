"""Bundles of saved objects on their way into Kibana or OpenSearch Dashboards, and out of it again.

    client      requests, and what a refusal means in a sentence
    product     which server this is, what it takes, and under which header
    bundle      the lines of a file of saved objects, and what each refers to
    importing   what would happen, and what happened, object by object
    removal     the same backwards
    alerting    rules of Kibana that raise an alert over our results

Servers report success where objects lack what they refer to, where a space does not exist, and where an
object got another id. What is asked here before and checked afterwards is what they do not say.
"""

from dashboards.servers.alerting import Rule, remove_rules, rules, set_rules
from dashboards.servers.bundle import Bundle, SavedObject, read_bundle, renamed
from dashboards.servers.client import Client, Login
from dashboards.servers.importing import import_bundle, plan_import
from dashboards.servers.outcome import Outcome
from dashboards.servers.product import Server, recognise
from dashboards.servers.removal import plan_removal, remove_bundle

__all__ = [
    "Bundle",
    "Client",
    "Login",
    "Outcome",
    "Rule",
    "SavedObject",
    "Server",
    "import_bundle",
    "plan_import",
    "plan_removal",
    "read_bundle",
    "recognise",
    "remove_bundle",
    "remove_rules",
    "renamed",
    "rules",
    "set_rules",
]
