"""The first tables: engines, calls, values that all engines agree on, and agents' conversations."""

import sqlalchemy as sql
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the tables."""
    moment = sql.DateTime(timezone=True)
    op.create_table(
        "callboard_engines",
        sql.Column("number", sql.BigInteger, sql.Identity(), primary_key=True),
        sql.Column("name", sql.Text, nullable=False),
        sql.Column("started", moment, server_default=sql.func.now(), nullable=False),
        sql.Column("seen", moment, server_default=sql.func.now(), nullable=False),
    )
    op.create_table(
        "callboard_calls",
        sql.Column("id", sql.BigInteger, primary_key=True, autoincrement=False),
        sql.Column("started", sql.Double, nullable=False),
        sql.Column("client", sql.Text, nullable=False),
        sql.Column("server", sql.Text, nullable=False),
        sql.Column("method", sql.Text, nullable=False),
        sql.Column("tool", sql.Text, nullable=False),
        sql.Column("status", sql.Text, nullable=False),
        sql.Column("duration_ms", sql.Double),
        sql.Column("request_bytes", sql.BigInteger, nullable=False),
        sql.Column("response_bytes", sql.BigInteger, nullable=False),
        sql.Column("error", sql.Text, nullable=False),
        sql.Column("engine", sql.Text, nullable=False),
        sql.Column("arguments", sql.Text),
        sql.Column("result", sql.Text),
        sql.Column("arguments_cut", sql.Boolean, nullable=False),
        sql.Column("result_cut", sql.Boolean, nullable=False),
        sql.Column("changed", moment, server_default=sql.func.now(), nullable=False),
        sql.Column(
            "kept",
            sql.BigInteger,
            sql.Computed(
                "200 + coalesce(octet_length(arguments), 0) + coalesce(octet_length(result), 0)", persisted=True
            ),
            nullable=False,
        ),
    )
    # in the order in which calls are shown; with the id, a page in the middle is found in the index alone
    op.create_index("callboard_calls_started", "callboard_calls", ["started", "id"])
    op.create_index("callboard_calls_changed", "callboard_calls", ["changed"])
    op.create_index(
        "callboard_calls_running", "callboard_calls", ["id"], postgresql_where=sql.text("status = 'running'")
    )
    op.create_table(
        "callboard_values",
        sql.Column("name", sql.Text, primary_key=True),
        sql.Column("version", sql.BigInteger, nullable=False),
        sql.Column("value", sql.LargeBinary, nullable=False),
    )
    # the agents' servers make it too, where an agent has a store without this setting
    op.create_table(
        "callboard_conversations",
        sql.Column("id", sql.Text, primary_key=True),
        sql.Column("agent", sql.Text, nullable=False),
        sql.Column("client", sql.Text, nullable=False),
        sql.Column("key", sql.Text, nullable=False),
        sql.Column("turns", sql.Integer, nullable=False),
        sql.Column("size", sql.BigInteger, nullable=False),
        sql.Column("used", sql.Double, nullable=False, index=True),
        sql.Column("version", sql.Integer, nullable=False),
        sql.Column("state", sql.Text, nullable=False),
        if_not_exists=True,
    )


def downgrade() -> None:
    """Remove the tables and all that they hold."""
    for table in ("callboard_conversations", "callboard_values", "callboard_calls", "callboard_engines"):
        op.drop_table(table)
