"""Saved objects common to the bundles for Kibana and OpenSearch Dashboards.

objects      an object in its envelope: ids, stamps, references, lines of text
data_views   tables as data views: fields, labels, formats, what is hidden
jobs_view    the jobs themselves as a data view, with fields that are computed when asked
conditions   the conditions of a view as a search bar spells them
charts       panels that Vega-Lite draws, in the colours of a server, with a word when there is nothing
texts        panels of words: explanations, the way to other pages
searches     rows as they are, as saved searches
boards       a page as a dashboard: grid, references under both names, time range
filling      the panels of a page on its board
checks       what a server would refuse or break, said before
"""
