"""Elasticsearch and OpenSearch as stores: jobs in own indices, results behind filtered aliases."""
