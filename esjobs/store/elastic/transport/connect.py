"""Detection of the product, and connection with its client."""

from typing import Literal

from esjobs.core.errors import SettingsError
from esjobs.store.elastic.transport.access import Access
from esjobs.store.elastic.transport.cluster import Cluster

Product = Literal["elasticsearch", "opensearch"]


def connect(access: Access, product: Product | None = None) -> Cluster:
    """Connect to a cluster; ``product`` None: detect it.

    Raises :class:`StoreError` without an answer or access, :class:`MissingExtraError` without the client of
    OpenSearch.
    """
    if access.aws_region is not None and product == "elasticsearch":
        raise SettingsError(
            f"cluster.aws_region (signatures of AWS) is for OpenSearch, but cluster.product for "
            f"{access.location} is elasticsearch; remove one of them"
        )
    # Elasticsearch's client checks the product at its first answer
    if product != "opensearch" and access.aws_region is None:
        from esjobs.store.elastic.transport.elasticsearch_client import (
            ElasticsearchCluster,
            OtherProductError,
        )

        try:
            return ElasticsearchCluster(access)
        except OtherProductError:
            if product == "elasticsearch":
                raise
    from esjobs.store.elastic.transport.opensearch_client import OpenSearchCluster

    return OpenSearchCluster(access)
