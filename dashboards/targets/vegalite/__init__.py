"""Charts as Vega-Lite, from the description of a panel alone: the same for rows and for an index.

    sources    where rows come from: a named dataset, inline values, the hits of an index
    index      what an index is asked for the rows of a view
    marks      looks, error bars, marks, tooltips
    names, tasks    the charts, by kind of panel
    charts     a panel -> its specification

What is derived is derived by Vega-Lite (transforms, lookups, scales), so that nothing needs to be prepared
for it. Data enters as data only: no value is pasted into an expression, no channel turns one into an address.
"""
