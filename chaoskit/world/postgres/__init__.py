"""The PostgreSQL service: a relay, with the gate in it, in front of a real server.

What changes the database for good is the end of a transaction, so that is what crosses:

- a statement that commits by itself: op is what it does and key its table, such as
  ``insert[orders]``, ``create_table[orders]``, ``copy[orders]``; of several in one
  transaction (one simple query, or all that is sent before a Sync) the first that
  writes gives the name. ``select[f]`` calls a function ``f`` that may write,
  ``nextval[s]`` moves a sequence, ``call[p]`` and ``do`` run a procedure;
- the COMMIT of a transaction block that wrote: ``commit[tx]``, and likewise
  ``prepare_transaction``, ``commit_prepared`` and ``rollback_prepared``.

Statements inside a block are no crossings: nobody but their own session sees them, and
a crash undoes them, so a kill between two of them leaves what one before the COMMIT
leaves (but that a sequence keeps what it gave, as always in PostgreSQL). Nor is what
keeps nothing: reads, row and advisory locks, LISTEN and NOTIFY, savepoints, settings,
VACUUM, ROLLBACK. A statement counts by its words, also where it finds nothing to do.

Edges: ``before`` (the message is whole; nothing is done. A COPY has sent its rows, and
what was flushed before the Sync is done, but for the commit) and ``after`` (it is
committed, and the reply withheld). `chaoskit.wire.postgres.sql` has the words.
"""

from chaoskit.world.postgres.service import Postgres

__all__ = ["Postgres"]
