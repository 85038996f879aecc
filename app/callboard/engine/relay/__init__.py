"""The relay: raw JSON-RPC between clients and servers, of both protocol eras."""
