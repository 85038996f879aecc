"""What several engines share in PostgreSQL: the call log, the clients' tokens and what else they must agree on.

Only :mod:`callboard.engine.storage.setting` is imported without the setting ``storage``: the rest needs SQLAlchemy.
"""
