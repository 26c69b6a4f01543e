"""The paper's Algorithms 1 to 7 in plain Python, record by record, corrected where they err.

Gergatsoulis and Damigos, *Evaluating Continuous Basic Graph Patterns over Dynamic Link Data Graphs*. Names are the
paper's, so that a reader finds each algorithm:

    ground.py       Algorithm 1, ground queries              process_update_message_on_ground_BGP
    star.py         Algorithm 2, simple var-centric stars    process_update_message_on_star
    product.py      Algorithm 3, products of components      eval_loosely_connected_query
                    (Algorithm 4, the functions that those three use, is the methods of their states)
    connected.py    Algorithms 5 and 7, var-connected        eval_vars_connected_query, find_delta_var_summaries
    extended.py     Algorithm 6, generalised stars           process_update_message_on_star_ext
    evaluator.py    one evaluator a query, put together from the above

Where the code departs from the paper, the docstring says so, and `docs/decisions/` says why. Two departures run
through all of it. *A message is applied pattern by pattern*: for the patterns that its triple unifies with, in the
order of the query, the state is updated for that pattern alone and the deltas that use it are reported, so that each
delta has exactly one trigger. And *terms are integers*.
"""
