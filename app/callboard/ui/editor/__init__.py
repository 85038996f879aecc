"""The server editor: forms for roster entries, the dialog that holds them, and undo."""
