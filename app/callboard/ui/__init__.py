"""The window and the tray. Qt only; talks to the engine through callboard.api.client."""
