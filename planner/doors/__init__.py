"""Whatever an operator has becomes a cluster: outputs of tools recognised by their content, and put together."""
