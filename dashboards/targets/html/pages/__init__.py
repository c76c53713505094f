"""The pages of dashboards as HTML: a folder that a browser opens from disk, with no server and no network.

The same descriptions that the bundles draw (:class:`dashboards.spec.Page`) become a small file of HTML per
page, one script and one style sheet for all of them, and files of rows that a page loads when it is opened or
when another processing type is chosen. What a bundle asks of an index with the filters of a dashboard, a page
works out itself from these rows: which of them are chosen, and what is added up over them.

    pools     which rows the panels of a page need, read once for all of them
    columns   rows packed for the browser, texts beside numbers
    figures   a panel as charts: specification, rows, legend
    panels    a panel as what the script draws, by its kind
    files     everything as files: names and texts
"""
