"""Results for people: panels described once, drawn as charts and put together as a report.

    spec, columns, *_panels, panels    what is shown, as plain facts about the result tables
    rows, cells, scales, labels        from a table to rows, texts, axes, places of labels
    marks, charts, expert_charts       rows as Altair charts
    books, conclusion, parts, evidence, compose    panels made concrete, in the order of the report
    theme, report                      one HTML file

To add a panel: describe it in the module of its subject and name it in :data:`dashboards.panels.REPORT`.
"""
