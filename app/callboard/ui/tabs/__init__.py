"""What stands beside the list of servers for the chosen one."""
