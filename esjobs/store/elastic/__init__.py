"""Elasticsearch and OpenSearch as the store: jobs in an index of ours, results behind filtered aliases."""
