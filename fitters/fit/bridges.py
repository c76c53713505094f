"""Units that a single other unit links with the rest.

Connected is not comparable: where all paths lead through one unit, whatever is wrong with its two jobs or
tasks is wrong with everything behind it.
"""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import breadth_first_tree, connected_components

from fitters.layout.arrays import Codes, Ints, Mask, Texts, texts
from fitters.layout.columns import factorise_pair, read_numbers
from fitters.layout.table import Table

LEAST_JOBS = 50


@dataclass(frozen=True, eq=False)
class Bridges(Table):
    """One row per unit, sorted by name."""

    name: Texts
    # True if the unit is connected with the largest set by two paths that share no other unit, over buckets
    # of enough jobs; a common task is a path by itself. Members of the largest set are.
    sound: Mask
    # The unit through which all its paths lead, the one nearest to the largest set; None where there is none
    via: Texts
    reason: Texts  # Why it is not sound, otherwise empty


def find_bridges(task: object, unit: object, n_jobs: object) -> Bridges:
    """Find the units that a single unit links with most others, or only buckets of fewer than 50 jobs.

    Units are neighbours if they share a task. The blocks of that graph are the sets that no single unit can
    cut (Tarjan, SIAM J. Comput. 1 (1972) 146); the largest one is the reference. Thinning to two forests
    keeps the blocks (Cheriyan, Kao and Thurimella, SIAM J. Comput. 22 (1993) 157). O(sum of squared task
    sizes).

    Raises :class:`InputError`: no rows, different lengths, text in a number.

    >>> task, unit = ["t", "t", "t", "u", "u"], ["A", "B", "C", "C", "D"]
    >>> find_bridges(task, unit, [90] * 5).via.tolist()
    [None, None, None, 'C']
    """
    tasks, units, n = factorise_pair(task, unit)
    jobs = read_numbers(n_jobs, "n_jobs", n)
    named = (tasks.codes >= 0) & (units.codes >= 0)
    size = units.names.size
    strong = named & (jobs >= LEAST_JOBS)
    graph = _neighbours(tasks.codes[strong], units.codes[strong], tasks.names.size, size)
    parent = _sole_links(graph)
    sound, via, reason = parent == _IN_CORE, texts(size), texts(size)
    via[:] = None
    for index in np.flatnonzero(~sound):
        if parent[index] >= 0:
            via[index] = units.names[parent[index]]
            reason[index] = f"linked through {via[index]} only"
        else:
            reason[index] = f"only buckets with fewer than {LEAST_JOBS} jobs link it with other names"
    return Bridges(units.names, sound, via, reason)


_IN_CORE, _UNLINKED = -1, -2


def _neighbours(task: Codes, unit: Codes, n_tasks: int, n_units: int) -> csr_array:
    shape = (n_tasks, n_units)
    incidence = coo_array((np.ones(task.size), (task, unit)), shape=shape).tocsr()
    graph = (incidence.T @ incidence).tocsr()
    graph.setdiag(0.0)
    graph.eliminate_zeros()
    return graph


def _sole_links(graph: csr_array) -> Ints:
    # Per node the cut node that links it to the largest block; _IN_CORE inside it, else _UNLINKED.
    n = graph.shape[0]
    count, label = connected_components(graph, directed=False)
    link_of = np.full(n, _UNLINKED)
    if n == 0:
        return link_of
    main = int(np.argmax(np.bincount(label, minlength=count)))
    root = int(np.argmax(label == main))
    blocks = _blocks(_thinned(graph, root), root)
    if not blocks:
        link_of[label == main] = _IN_CORE
        return link_of
    _link_chains(blocks, link_of)
    return link_of


def _link_chains(blocks: list[list[int]], link_of: Ints) -> None:
    of_node: dict[int, list[int]] = {}
    for number, block in enumerate(blocks):
        for node in block:
            of_node.setdefault(node, []).append(number)
    core = max(range(len(blocks)), key=lambda number: (len(blocks[number]), -number))
    link_of[blocks[core]] = _IN_CORE
    seen, waiting = {core}, [core]
    while waiting:
        for cut in blocks[waiting.pop(0)]:
            # Behind a chain of cuts the one nearest to the core is what all depends on.
            link = cut if link_of[cut] == _IN_CORE else link_of[cut]
            for other in of_node[cut]:
                if other in seen:
                    continue
                seen.add(other)
                waiting.append(other)
                for node in blocks[other]:
                    if link_of[node] == _UNLINKED:
                        link_of[node] = link


def _thinned(graph: csr_array, root: int) -> list[list[int]]:
    n = graph.shape[0]
    first = breadth_first_tree(graph, root, directed=False)
    first = first + first.T
    rest = graph - graph.multiply(first != 0)
    rest.eliminate_zeros()
    forest = first
    _, label = connected_components(rest, directed=False)
    _, starts = np.unique(label, return_index=True)
    for start in starts:
        if rest.indptr[start] < rest.indptr[start + 1]:
            tree = breadth_first_tree(rest, int(start), directed=False)
            forest = forest + tree + tree.T
    forest = csr_array(forest)
    return [forest.indices[forest.indptr[node] : forest.indptr[node + 1]].tolist() for node in range(n)]


def _blocks(neighbours: list[list[int]], root: int) -> list[list[int]]:
    # Tarjan's blocks of the component of `root`, without recursion.
    depth, low = {root: 0}, {root: 0}
    path = [(root, -1, iter(neighbours[root]))]
    stack, blocks = [root], []
    while path:
        node, parent, others = path[-1]
        for other in others:
            if other == parent:
                continue
            if other in depth:
                low[node] = min(low[node], depth[other])
                continue
            depth[other] = low[other] = len(depth)
            stack.append(other)
            path.append((other, node, iter(neighbours[other])))
            break
        else:
            path.pop()
            if parent < 0:
                continue
            low[parent] = min(low[parent], low[node])
            if low[node] >= depth[parent]:
                block = [parent]
                while block[-1] != node:
                    block.append(stack.pop())
                blocks.append(sorted(block))
    return blocks
