"""Array names, dtypes, sentinels and status codes of the kernel. The one place where they are decided.

All state is integers in flat arrays, which live in one arena (`arena.py`): each has a name, a dtype, and a place that
it may grow into without ever moving. Fresh memory is zero, and zero means *none* everywhere: ids, units and rows begin
at 1. A *unit* is two `id_t`, eight bytes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

id_t = np.int32
Ints = NDArray[np.int32]
Longs = NDArray[np.int64]

UNIT = 2
"""`id_t` in a unit of the heap."""
MAX_TERMS = 1 << 28
FIRST_EDGE = 1 << 28
"""Ids from here on are triples that match a pattern of three variables: nodes of their own."""
MAX_IDS = 1 << 29
MAX_HEAP_UNITS = 1 << 31
MAX_HUB_BUCKETS = 1 << 26
MAX_RELATIONS = 1 << 22
MAX_TARGETS = 1 << 22
MAX_LIVES = 1 << 22
MAX_LOG = 1 << 28
RESIDUE = 64
"""What an engine knows beside its arrays, in numbers, of each of the last two versions: see `sharding/residue.py`."""
WAITING = 5
"""A waiting message, and whether it is muted."""

# A node: two ints. Its block of entries in the heap, and how many there are.
N_BLOCK, N_COUNT, NODE = 0, 1, 2

# An entry: one unit. Its tag is `slot << TAG_SHIFT | size`, its payload depends on the size.
E_TAG, E_PAYLOAD = 0, 1
TAG_SHIFT = 8
SIZE_MASK = (1 << TAG_SHIFT) - 1
"""Size 1: the payload is the neighbour. Up to `SMALL`: the unit of a slab. `LONG`: the unit of a header."""
SMALL = 64
"""A longer list has its neighbours' positions in the hub table."""
LONG = SIZE_MASK

# A long list's header: two units.
L_COUNT, L_PLACE, L_CLASS, L_HUB = 0, 1, 2, 3
"""The place is a slab of that size class; of class `SEGMENTED` or more, a directory of slabs of class `SEGMENT`."""
SEGMENT = 9
SEGMENT_SHIFT = SEGMENT + 1
SEGMENT_INTS = 1 << SEGMENT_SHIFT
"""Neighbours in a segment: 4 KiB. So no list is ever copied whole, and growth does not stop the world."""
SEGMENTED = 64

CLASSES = 32
"""Size classes of the heap: class k is 2**k units."""

# A bucket of the hub table: one cache line.
B_COUNT, B_NEXT, B_FIRST, BUCKET = 0, 1, 2, 16
"""How many entries, the unit of the next bucket in the chain, and then (hub, neighbour, position) each."""
ENTRY_INTS = 3
BUCKET_ENTRIES = 4
BUCKET_CLASS = 3
HUB_LOAD = 3
"""Entries a bucket, on average."""

# Counters: one int64 each.
C_HEAP_TOP = 0
C_HUB_COUNT = 1
C_HUB_BUCKETS = 2
C_HUB_MASK = 3
"""The next power of two, minus one: of buckets, less those that have not been split yet."""
C_HUBS = 4
C_HUB_FREE = 5
C_EDGE_TOP = 6
C_EDGE_FREE = 7
C_ROW_COUNT = 8
C_ROW_BUCKETS = 9
C_ROW_MASK = 10
C_TRIPLES = 11
C_HEAP_IN_USE = 12
C_EDGE_COUNT = 13
C_EDGE_BUCKETS = 14
C_EDGE_MASK = 15
C_LOG_COUNT = 16
C_IN_TRANSACTION = 17
C_TRANSACTION_LOG = 18
"""How many changes are in the log; whether a transaction is open, and how many were there when it was opened."""
C_BATCH_LOG, C_BATCH_IN_TRANSACTION, C_BATCH_TRANSACTION_LOG = 19, 20, 21
"""The same three when the batch that can be taken back began."""
C_FREE = 32
"""The first of the heap's free lists, one a class."""
COUNTERS = 128

# Edges: triples that match a pattern of three variables, by their three ids. Four ints each.
EDGE_S, EDGE_P, EDGE_O, EDGE_NEXT, EDGE = 0, 1, 2, 3, 4

# Rows of views, in the heap: what a view's store holds.
ROW_NEXT, ROW_COUNT, ROW_BEFORE, ROW_AFTER, ROW_VIEW, ROW_VALUES = 0, 1, 2, 3, 4, 5
"""Next in the bucket, multiplicity, neighbours in the view's list, the view's number, the values."""

# A view's state: its first row's unit, how many rows there are, and their width.
VIEW_FIRST, VIEW_SIZE, VIEW_WIDTH, VIEW_STATE = 0, 1, 2, 4

# A kind of live lists, by number: whether they are kept, and how the work that they would spare, or cost, adds up.
LIVE_IS_KEPT, LIVE_BALANCE, LIVE_STATE = 0, 1, 2
LIVE_ROOM = 1 << 12
"""So much more than the relation's size may the balance come to, before lists are kept, or are not any more."""
LIVE_CREDIT = 4
"""How many candidates that were of no use make up for one that was."""

# The program ---------------------------------------------------------------------------------------------------------
# Records of int64, each with an address. Address 0 is none. Relations, components, views, products and triggers are
# records; tables belong to triggers.

# A relation: the triples that unify with a pattern, up to the names of its variables.
R_NUMBER, R_ARITY, R_EQUAL, R_POSITIONS, R_BIT, R_SLOT, R_KEEP, R_TRIGGER, R_NEXT = 0, 1, 2, 3, 6, 7, 8, 9, 10
R_MASK, R_CONSTANTS, R_LIVES, R_NEEDS, RELATION = 11, 12, 15, 16, 17
"""`R_EQUAL`: bits S_IS_P, S_IS_O, P_IS_O. `R_POSITIONS`: where in the triple its variables stand. `R_BIT`: its flag,
where it has one variable; 0 for a slot without neighbours. `R_KEEP`: which of its two directions are indexed.
`R_LIVES`: the first kind of live lists that are kept of its neighbours. `R_NEEDS`: the first need of some that looks at
its neighbours."""
S_IS_P, S_IS_O, P_IS_O = 1, 2, 4
MOST_BITS = 62
IN_S, IN_P, IN_O = 1, 2, 4
"""Which positions hold constants."""
KEEP_FORWARD, KEEP_BACK = 1, 2
PRESENT = 1
"""The only neighbour of a node in a slot that stands for a flag."""

# A trigger: the search for the embeddings that map one pattern of a component to the message's triple.
T_NEXT, T_COMPONENT, T_BOUND, T_BOUNDS, T_CHECK, T_CHECKS, T_INNER, T_INNERS, T_LEAF, T_LEAVES = range(10)
T_VARIABLE, T_GROUND, T_GROUNDS, T_WIDTH, TRIGGER = 10, 11, 12, 13, 14
"""`T_BOUND` is a table's address, `T_BOUNDS` its length; likewise the others."""
BOUND = 2  # variable, where its value is: 0 to 2 in the triple, or FROM_EDGE
FROM_EDGE = 3
CHECK = 6  # slot, from and to variable, exclusion, exclusion's positions from and to
V_STEP, V_STEPS, V_MASK, V_EXTRA, V_EXTRAS, V_CANDIDATE, VARIABLE = 0, 1, 2, 3, 4, 5, 6
STEP = 6  # other variable, slot, exclusion, exclusion's positions from and to, kind of live lists
EXTRA = 3  # what, the slot or the relation's number, and as in BOUND
IN_SLOT, NOT_MESSAGE = 0, 1
"""The node has that slot; the value is not the message's at that place, if its triple is in that relation."""

# A kind of live lists: of a node's neighbours in one slot those that can bind the variable it leads to.
Y_NUMBER, Y_SLOT, Y_LIVE_SLOT, Y_RELATION, Y_MASK, Y_NEED, Y_NEEDS, Y_NEXT, Y_ABOVE, LIVE = range(10)
"""`Y_RELATION`: the number of the relation whose slot it is. `Y_MASK`: flags that a live node has. `Y_NEED`: the table
of the slots in which it has neighbours, `Y_NEEDS` of them. `Y_NEXT`: the next kind that is kept of the same relation.
`Y_ABOVE`: the first need that looks at these lists."""
N_NEXT, N_OWNER, N_SLOT, N_BELOW, NEED = 0, 1, 2, 3, 4
"""A need: the next one in its chain, the kind whose need it is, the slot (or `BY_FLAG`), and the kind of live lists
that tell more than the slot's, where they are kept."""
BY_FLAG = -1
WAKE = 3  # kind, node, how many of those that lead to the node have been told

# A component: patterns that share variables, the same for all queries that have them.
K_WIDTH, K_TARGET, K_IS_PLAIN, K_VIEW, COMPONENT = 0, 1, 2, 3, 4
"""`K_IS_PLAIN`: embeddings go out as they are. `K_VIEW`: the first view that counts its rows."""

# A view: the distinct projections of a component's embeddings, counted.
W_NUMBER, W_TARGET, W_IS_SHOWN, W_PRODUCT, W_NEXT_VIEW, W_WIDTH, W_COLUMNS = 0, 1, 2, 3, 4, 5, 6
"""`W_IS_SHOWN`: rows go out. `W_PRODUCT`: the first product that it is in. `W_COLUMNS`: the component's variables."""

# A product's place for one of its views; a view has one of these for each product that it is in.
X_NEXT, X_TARGET, X_WIDTH, X_OWN, X_VIEWS, X_FIRST = 0, 1, 2, 3, 4, 5
"""`X_OWN`: which of the product's views this is. `X_FIRST`: for each view, number, width, and place in the row."""
X_VIEW = 3

# The dispatch table: two ints in front, then open addressing by (mask, constants).
D_SIZE, D_MASKS, D_FIRST = 0, 1, 8
D_KEY, D_CONSTANTS, D_RELATION, D_SUBMASKS, DISPATCH = 0, 1, 4, 5, 8
"""`D_MASKS`: the masks in use that have no constant predicate, a bit each; `D_SUBMASKS`: those with this predicate."""

# The cursor: where the kernel stands between two calls.
U_MESSAGE, U_MESSAGES, U_PHASE, U_SERIAL, U_S, U_P, U_O, U_EDGE, U_OP, U_HIT, U_HITS, U_TRIGGER = range(12)
"""The message, how many there are, what is under way, the message's number in the life of the state, its triple and
edge, what it does, the relation and how many there are, and the trigger. From `U_S` on as in `BOUND`."""
U_DEPTH, U_OUT, U_RUN, U_STAGED, U_STAGE_RUN = range(12, 17)
"""The search's depth, the end of the output and its last run, the same of the stage."""
U_STAGE_AT, U_ROW, U_VIEW, U_PRODUCT = range(17, 21)
"""What is being delivered: the stage's run, its row, the view, the product."""
U_TURN = 29
"""The row of the view that is new, or going."""
U_NODE, U_INDEX = 21, 22
"""Where a scan of a relation stands."""
U_DELTAS, U_REPEATED, U_ABSENT, U_EFFECTIVE = range(23, 27)
U_RELEVANT, U_DROPPED = 30, 31
"""Counts, for whoever resets them."""
U_OUT_ROOM, U_STAGE_ROOM = 27, 28
"""How long the output and the stage are."""
U_IS_STRICT, U_IS_LOGGED, U_GROUP_END, U_MIXED, U_FAULT = range(32, 37)
"""Whether a message without effect is an error; whether all changes are logged; behind the last message of the mixed
group that is under way, or 0; how many mixed groups there were; the message that had no effect."""
U_BY_TRANSACTION, U_IS_OPEN, U_GROUP, U_COMMITTED, U_WAITING_ABSENT = range(37, 42)
"""Where admission stands: whether a transaction is one change, whether one is open, the place of its group's header,
how many were committed; and of the open one, how many deletions of terms that are nowhere count if it is committed."""
U_BEGUN = 44
"""How many transactions were begun, in transaction granularity, for whoever resets it."""
U_SWITCH, U_LIVE_ROOM = 42, 43
"""The kind of live lists that should be kept from now on, or no longer be kept; or 0. And `LIVE_ROOM`, or what tests
set."""
CURSOR = 64

ROW_SPARE = 4
"""Ints behind the end of the output and of a row's values that copies by four may write, or read."""

# Frames of the search: one a variable that is being bound.
F_VARIABLE, F_ENTRY, F_INDEX, F_SIZE, F_EXCLUDED, F_AT, F_RUN_END, F_LIVE, FRAME = 0, 1, 2, 3, 4, 5, 6, 7, 8
# Candidates: one list that a variable's value has to be in.
G_ENTRY, G_SIZE, G_EXCLUDED, G_LIVE, G_SPARED, GIVEN = 0, 1, 2, 3, 4, 5
"""`G_LIVE`: the kind of live lists that there could be. `G_SPARED`: where there is one, how many candidates less."""

# Classes of terms, for an engine that has a share of the answers: keys of the hash, how many classes there are, the
# flags of all of them, and then for each class which of a hash's values it is, and its flag.
Z_COUNT, Z_FLAGS, Z_FIRST = 8, 9, 10
Z_SALT, Z_SHARE, Z_PLACE, Z_FLAG, CLASS = 0, 1, 2, 3, 4

# Where a router sends rows. `routes` begins, for each relation, with the place of its first route; a route has the next
# one's place, the shard of its cell 0, how many coordinates and offsets it has, and then these.
J_NEXT, J_BASE, J_COORDINATES, J_OFFSETS, J_FIRST = 0, 1, 2, 3, 4
J_POSITION, J_SALT, J_SHARE, J_STRIDE, J_COORDINATE = 0, 1, 2, 3, 4
"""A coordinate: where its term stands in the triple, which place of a hash it takes, and how far places are apart."""
N_SHARDS, N_NEEDS_TERMS, N_STRICT, N_SERIAL, N_ROWS, N_RELEVANT, N_DROPPED, N_END, ROUTING = 0, 1, 2, 3, 4, 5, 6, 7, 8
"""The router's settings, whether rows' terms have to be looked up, and its counts; and where what it has put behind the
data ends."""
MARK_BYTES = 128
"""More than a mark of the stream takes there, unless a long comment stands behind it."""
SENT_SHARD, SENT_START, SENT_END, SENT_PLACE, SENT = 0, 1, 2, 3, 4
"""A row that goes to a shard: twice the shard, and 1 if it deletes; the range of its terms; what is packed with it."""
Y_ROWS, Y_TEXT, YIELD = 0, 1, 2
"""Of each shard: rows and bytes of text; or where they go."""

# A run of rows in the output: target, message, sign, rows; then the rows.
O_TARGET, O_MESSAGE, O_SIGN, O_ROWS, O_HEADER = 0, 1, 2, 3, 4

# A message: what it does, and its triple.
M_OP, M_S, M_P, M_O, MESSAGE = 0, 1, 2, 3, 4
OP_INSERT, OP_DELETE = 1, -1
OP_NONE, OP_BEGIN, OP_COMMIT, OP_GROUP, OP_UNDO = 0, 2, 3, 4, 5
"""`OP_GROUP`, `OP_UNDO`: the next `M_S` messages are one change. Of an undo nobody counts what has no effect."""

# Phases and status codes.
IDLE, MATCHED, SEARCHING, DELIVERING = 0, 1, 2, 3
DONE, OUT_FULL, STAGE_FULL, OUT_GROW, NO_EFFECT, SWITCH = 0, 1, 2, 3, 4, 5
"""`OUT_GROW`: the output must become longer, for what a mixed group brings has to be in it as a whole. `SWITCH`: live
lists are to be kept from here on, or no longer."""
AT_END = -1

# What became of a row on its way to a message; negative statuses are those of `scan_layout.py`.
DROPPED, READY, RELEVANT, ABSENT = 0, 1, 2, 4
ALL_ADMITTED, MESSAGES_FULL, SPECIAL = 0, 1, 2
"""Why admission stopped: no more rows, no more room, or a row for the caller."""

# Where rows go: for each target the place of its list of readers in the table: how many there are, and then for each
# the target that stands for it alone, its width, and the columns of the shared target's rows that it has.
READER = 2

# A row of a mixed group while it is netted: where in the output it is, its reader, and what it comes to.
NET_AT, NET_READER, NET_SUM, NET_SLOT, NET = 0, 1, 2, 3, 4

# The encoder's plan: who is told of a target's rows, and in what bytes. Record 0 is none.
Q_FORMAT, Q_TARGETS, Q_FIRST = 0, 1, 2
"""`Q_TARGETS`: one more than the highest target. From `Q_FIRST` on, the record of each target."""
JSON_FORMAT, TSV_FORMAT, CSV_FORMAT = 0, 1, 2
G_WIDTH, G_COUNT, G_FIRST = 0, 1, 2
"""A target: the width of its rows, how many subscribers it has, and the record of each."""

# A subscriber: its number, and literals: each a place in the literals, and a length.
S_NUMBER, S_START, S_ADDED, S_REMOVED, S_TAIL, S_FIXED = 0, 1, 3, 5, 7, 9
S_CELLS, S_COLUMNS, S_COLUMN, SUBSCRIBER = 10, 11, 12, 13
"""`S_START` stands before the seq, `S_ADDED` or `S_REMOVED` behind it. `S_FIXED`: no row of it has more bytes than
these and its terms' texts. Then `S_CELLS` cells follow; its `S_COLUMNS` variables are from `S_COLUMN` on, counted from
the record."""
CELL_COLUMN, CELL_IRI, CELL_LITERAL, CELL_BLANK, CELL = 0, 1, 3, 5, 7
"""The column of the target's row, and the literal before the term, by what kind of term it is."""
COLUMN_PLACE, COLUMN_VARIABLE, COLUMN = 0, 1, 2
"""A projected variable: its column in the target's row, and its number among all queries' variables."""

NUMBER_BYTES = 20
"""The literals begin with room for a seq; then these follow."""
LANGUAGE, DATATYPE = b'","xml:lang":"', b'","datatype":"'
AT_LANGUAGE = NUMBER_BYTES
AT_DATATYPE = AT_LANGUAGE + len(LANGUAGE)
AT_LITERALS = AT_DATATYPE + len(DATATYPE)
CELL_BYTES = 32
"""More than JSON or CSV put around a term, its literal aside."""
SPARE = 128
"""Bytes that the literals, and an encoder's buffer, have beyond what is in them: copies go by whole vectors."""

# Where the encoder stands between two calls.
H_RUN, H_SUBSCRIBER, H_ROW, H_COUNT, H_STATUS, HERE = 0, 1, 2, 3, 4, 5
"""The run, the subscriber, the row; how many rows went out in this call; and the status."""
UNKNOWN_TARGET = -2
