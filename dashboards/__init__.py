"""Results for people: panels described once, drawn by several targets.

    spec       the vocabulary: fields, views, looks, panels
    panels     what is shown, as plain facts about the result tables, a file per subject
    view       from a table to the rows of a view
    targets    html: one file for the browser

To add a panel: describe it in the file of its subject and name it in :data:`dashboards.panels.REPORT`.
"""
