"""Who may use what: the callers with their policies, the questions to the person, and what was answered for good."""
